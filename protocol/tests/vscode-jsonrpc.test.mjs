// The daemon and a foreign client, vscode-jsonrpc: every transport, every direction.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import rpc from "vscode-jsonrpc/node";
import { attach, spawnDaemon, suiteContext, userData } from "./daemon.mjs";

const PATIENCE = { timeout: 30_000 };
const TRANSPORTS = {
  stdio: (_t, { connection }) => connection,
  "the user's endpoint": (t, { folder }) => attach(t, folder),
};

/** Resolve with the error that a request ends in. */
function failure(request) {
  return request.then(
    (result) => assert.fail(`answered ${JSON.stringify(result)}`),
    (error) => error,
  );
}

/** Collect events until there are `count`. */
function events(connection, method, count) {
  const seen = [];
  return new Promise((resolve) => {
    connection.onNotification(method, (event) => {
      seen.push(event);
      if (seen.length === count) resolve(seen);
    });
  });
}

for (const [name, reach] of Object.entries(TRANSPORTS)) {
  describe(`vscode-jsonrpc over ${name}`, () => {
    const suite = suiteContext();
    let daemon;
    before(async () => {
      daemon = await spawnDaemon(suite, userData(suite));
    });
    after(() => suite.end());
    const connect = (t) => reach(t, daemon);

    test("a request gets its result", PATIENCE, async (t) => {
      const connection = await connect(t);

      const pong = await connection.sendRequest("app:ping", {});

      assert.equal(pong.pong, true);
    });

    test("text arrives as it was sent, a cut emoji as U+FFFD", PATIENCE, async (t) => {
      const connection = await connect(t);
      const value = { text: "林远说：「走。」🖋️\r\n𠮷", deep: [[[null, true, 1.5]]] };

      assert.deepEqual(await connection.sendRequest("e2e:echo", { value }), { value });
      assert.deepEqual(await connection.sendRequest("e2e:echo", { value: "笔\ud83d" }), {
        value: "笔\ufffd",
      });
    });

    test("a message of three megabytes goes both ways", PATIENCE, async (t) => {
      const connection = await connect(t);
      const value = "长夜将尽。".repeat(200_000);

      const echoed = await connection.sendRequest("e2e:echo", { value });

      assert.equal(echoed.value === value, true);
    });

    test("two hundred requests at once each get their own answer", PATIENCE, async (t) => {
      const connection = await connect(t);
      const numbers = Array.from({ length: 200 }, (_, number) => number);

      const answers = await Promise.all(
        numbers.map((value) => connection.sendRequest("e2e:echoInTask", { value })),
      );

      assert.deepEqual(answers.map((answer) => answer.value), numbers);
    });

    test("the daemon introduces itself and serves the contract that is written down", PATIENCE, async (t) => {
      const connection = await connect(t);
      const written = JSON.parse(readFileSync(new URL("../openrpc.json", import.meta.url), "utf8"));

      const welcome = await connection.sendRequest("initialize", {
        clientInfo: { name: "vscode-jsonrpc", version: "10" },
        positionEncoding: "utf-16",
      });
      const served = await connection.sendRequest("rpc.discover");

      assert.equal(welcome.positionEncoding, "utf-16");
      assert.equal(welcome.role, "owner");
      assert.match(welcome.contractHash, /^[0-9a-f]{64}$/);
      assert.deepEqual(served, written);
    });

    // requirement: CE-063
    test("each kind of error has its number and its code", PATIENCE, async (t) => {
      const connection = await connect(t);
      const requests = [
        ["no:such:channel", {}, -32601, "IPC_CHANNEL_FORBIDDEN"],
        ["project:create", {}, -32602, "INVALID_ARGUMENT"],
        ["project:setCurrent", { projectId: "prj_none" }, -32803, "NOT_FOUND"],
        ["e2e:fail", {}, -32603, "INTERNAL"],
      ];

      for (const [method, payload, number, code] of requests) {
        const error = await failure(connection.sendRequest(method, payload));

        assert.equal(error instanceof rpc.ResponseError, true);
        assert.deepEqual([error.code, error.data.code], [number, code]);
        assert.equal(error.data.retryable, false);
        assert.notEqual(error.message, "");
      }
    });

    // requirement: CE-059
    test("an error says which field, and an internal one nothing but a reference", PATIENCE, async (t) => {
      const connection = await connect(t);

      const misfit = await failure(connection.sendRequest("project:create", { rootPath: 7 }));
      const internal = await failure(connection.sendRequest("e2e:fail"));

      assert.equal(misfit.data.details.field, "rootPath");
      assert.match(internal.data.details.reference, /^err_/);
      assert.doesNotMatch(JSON.stringify(internal), /planted|Traceback|\.py/);
    });

    test("positional parameters are refused with a clear message", PATIENCE, async (t) => {
      const connection = await connect(t);
      const byPosition = rpc.ParameterStructures.byPosition;

      const error = await failure(connection.sendRequest("e2e:echo", byPosition, "a", "b"));

      assert.deepEqual([error.code, error.data.code], [-32602, "INVALID_ARGUMENT"]);
      assert.match(error.message, /named fields/);
    });

    test("notifications from the client are never answered", PATIENCE, async (t) => {
      const connection = await connect(t);
      const strays = [];
      connection.onUnhandledNotification((message) => strays.push(message));

      await connection.sendNotification("app:ping", {});
      await connection.sendNotification("no:such:channel", {});
      await connection.sendNotification("project:create", { rootPath: 7 });
      const pong = await connection.sendRequest("app:ping");

      assert.equal(pong.pong, true);
      assert.deepEqual(strays, []);
    });

    test("notifications from the client are acted upon", PATIENCE, async (t) => {
      const connection = await connect(t);
      const arrived = events(connection, "novel:changed", 1);

      await connection.sendNotification("e2e:notify", { method: "novel:changed" });

      assert.equal((await arrived).length, 1);
    });

    test("notifications from the daemon come in order, numbered and timed", PATIENCE, async (t) => {
      const connection = await connect(t);
      const arrived = events(connection, "novel:changed", 50);

      await connection.sendRequest("e2e:notify", {
        method: "novel:changed",
        params: { chapter: "第七章" },
        count: 50,
      });
      const seen = await arrived;

      const first = seen[0].seq;
      assert.deepEqual(seen.map((event) => event.seq - first), [...seen.keys()]);
      assert.equal(seen.every((event) => event.chapter === "第七章" && event.ts > 0), true);
    });

    test("a cancelled request answers CANCELED, once", PATIENCE, async (t) => {
      const connection = await connect(t);
      const source = new rpc.CancellationTokenSource();

      const request = connection.sendRequest("e2e:sleep", { ms: 600_000 }, source.token);
      source.cancel();
      const error = await failure(request);

      assert.deepEqual([error.code, error.data.code], [-32800, "CANCELED"]);
      assert.equal((await connection.sendRequest("app:ping")).pong, true);
    });

    test("a request past its own deadline answers TIMEOUT, not CANCELED", PATIENCE, async (t) => {
      const connection = await connect(t);
      const payload = { ms: 600_000, _meta: { timeoutMs: 50 } };

      const error = await failure(connection.sendRequest("e2e:sleep", payload));

      assert.deepEqual([error.code, error.data.code], [-32803, "TIMEOUT"]);
      assert.equal(error.data.retryable, true);
    });

    test("progress is reported to the token that asked, and not after the reply", PATIENCE, async (t) => {
      const connection = await connect(t);
      const seen = [];
      connection.onProgress(new rpc.ProgressType(), "mine", (value) => seen.push(value));
      const strays = [];
      connection.onUnhandledProgress((message) => strays.push(message));

      await connection.sendRequest("e2e:sleep", { ms: 20, _meta: { progressToken: "mine" } });
      const atReply = seen.length;
      await connection.sendRequest("e2e:sleep", { ms: 20 });

      assert.deepEqual(seen[0], { done: 0, of: 10 });
      assert.equal(seen.length, atReply);
      assert.deepEqual(strays, []);
    });

    test("the daemon calls the client and gets its answer", PATIENCE, async (t) => {
      const connection = await connect(t);
      const chunks = [{ source: "kg:林远", content: "性格冷静", score: 0.9 }];
      connection.onRequest("context:source:fetch", (params) => ({ asked: params.name, chunks }));

      const answer = await connection.sendRequest("e2e:callback", {
        method: "context:source:fetch",
        params: { layer: "rules", name: "kg" },
      });

      assert.deepEqual(answer.value, { asked: "kg", chunks });
    });

    test("a client that answers with an error, or has no such method, is a HOST_ERROR", PATIENCE, async (t) => {
      const connection = await connect(t);
      connection.onRequest("host:fails", () => new rpc.ResponseError(-32000, "secret sk-inside"));

      for (const method of ["host:fails", "host:unknown"]) {
        const error = await failure(connection.sendRequest("e2e:callback", { method }));

        assert.deepEqual([error.code, error.data.code], [-32803, "HOST_ERROR"]);
        assert.doesNotMatch(JSON.stringify(error), /sk-inside/);
      }
    });

    test("a client that does not answer in time gets a cancellation", PATIENCE, async (t) => {
      const connection = await connect(t);
      const canceled = new Promise((resolve) => {
        connection.onRequest("host:slow", (_params, token) => {
          return new Promise(() => token.onCancellationRequested(resolve));
        });
      });

      const error = await failure(
        connection.sendRequest("e2e:callback", { method: "host:slow", params: {}, timeoutMs: 50 }),
      );
      await canceled;

      assert.deepEqual([error.code, error.data.code], [-32803, "TIMEOUT"]);
    });

    test("`ipc:invoke` answers envelopes and never fails as a call", PATIENCE, async (t) => {
      const connection = await connect(t);

      const well = await connection.sendRequest("ipc:invoke", { channel: "app:ping" });
      const ill = await connection.sendRequest("ipc:invoke", {
        channel: "project:setCurrent",
        payload: { projectId: "prj_none" },
      });

      assert.equal(well.ok && well.data.pong, true);
      assert.deepEqual([ill.ok, ill.error.code], [false, "NOT_FOUND"]);
    });
  });
}

describe("the life of a spawned daemon", () => {
  test("shutdown and exit end it with status 0", PATIENCE, async (t) => {
    const { connection, exited } = await spawnDaemon(t, userData(t));

    assert.equal(await connection.sendRequest("shutdown"), null);
    await connection.sendNotification("exit");

    assert.deepEqual(await exited, [0, null]);
  });

  test("the end of stdin ends it with status 0", PATIENCE, async (t) => {
    const { child, exited } = await spawnDaemon(t, userData(t));

    child.stdin.end();

    assert.deepEqual(await exited, [0, null]);
  });

  test("nothing but the protocol is on stdout, and stderr is quiet", PATIENCE, async (t) => {
    const { connection, exited, faults, stderr } = await spawnDaemon(t, userData(t));

    await failure(connection.sendRequest("e2e:fail"));
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
    await exited;

    assert.deepEqual([faults, stderr()], [[], ""]);
  });

  test("a killed daemon is restarted and knows what it had acknowledged", PATIENCE, async (t) => {
    const folder = userData(t);
    const novel = join(folder, "长夜");
    mkdirSync(novel);
    const first = await spawnDaemon(t, folder);
    const project = await first.connection.sendRequest("project:create", { rootPath: novel });
    const pending = failure(first.connection.sendRequest("e2e:sleep", { ms: 600_000 }));
    const closed = new Promise((resolve) => first.connection.onClose(resolve));

    first.child.kill("SIGKILL");
    await closed;
    first.connection.dispose();
    await pending;
    const second = await spawnDaemon(t, folder);

    const listed = await second.connection.sendRequest("project:list");
    const other = await attach(t, folder);
    assert.deepEqual(listed.items, [project]);
    assert.deepEqual(await other.sendRequest("project:list"), listed);
  });

  test("two clients do not see each other's notifications", PATIENCE, async (t) => {
    const { connection, folder } = await spawnDaemon(t, userData(t));
    const other = await attach(t, folder);
    const strays = [];
    other.onUnhandledNotification((message) => strays.push(message));
    const arrived = events(connection, "novel:changed", 1);

    await connection.sendRequest("e2e:notify", { method: "novel:changed" });
    await arrived;
    await other.sendRequest("app:ping");

    assert.deepEqual(strays, []);
  });
});
