// `spawnDaemon`: found, ready, called, lost, restarted, stopped; against the real daemon, and against
// one that misbehaves where the real one never does.
import assert from "node:assert/strict";
import { ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { DaemonError, spawnDaemon } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { delayAfter } from "../daemon.mjs";
import { misbehaving, QUICK } from "./moods.mjs";

const PATIENCE = { timeout: 60_000 };
const LOOK_AGAIN_MS = 20;

/** The real daemon, gone with the test. */
async function real(t, options = {}) {
  const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK, ...options });
  return harness.daemon;
}

/** Resolve with the error that a call must end in. */
function failure(call) {
  return call.then(
    (result) => assert.fail(`answered ${JSON.stringify(result)}`),
    (error) => error,
  );
}

/** Resolve when the daemon is in this state. */
function becomes(daemon, wanted) {
  return new Promise((resolve) => {
    const forget = daemon.onState((state) => state === wanted && resolve(forget()));
  });
}

describe("starting", () => {
  test("the daemon is ready, an owner's, and counts in UTF-16", PATIENCE, async (t) => {
    const daemon = await real(t);

    assert.equal(daemon.state, "ready");
    assert.deepEqual([daemon.info.role, daemon.info.positionEncoding], ["owner", "utf-16"]);
    assert.equal((await daemon.call("app:ping")).pong, true);
  });

  test("it is told who we are, to end with us, and to speak UTF-8", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "well", { locale: "zh-CN", debug: true });
    const daemon = await starting;

    const seen = await daemon.call("any:thing");

    assert.deepEqual(daemon.info.asked, {
      clientInfo: { name: "@creonow/electron" },
      protocolVersion: 1,
      positionEncoding: "utf-16",
      parentPid: process.pid,
      locale: "zh-CN",
    });
    assert.equal(seen.utf8, "1");
    assert.deepEqual(seen.argv, ["serve", "--stdio", "--user-data", daemon.userData, "--debug"]);
  });

  test("it is found on the PATH that it is told, and an option left undefined is as good as none", PATIENCE, async (t) => {
    const PATH = `${dirname(COMMAND)}${delimiter}${process.env.PATH}`;
    const nothing = { executable: undefined, waitMs: undefined, onStderr: undefined, startTimeoutMs: undefined };

    const daemon = await real(t, { ...nothing, env: { PATH, CREONOW_DAEMON: "" }, restart: { attempts: undefined } });

    assert.equal((await daemon.call("app:ping")).pong, true);
  });

  test("it is started without a console window, on three pipes, as the leader of its tree", PATIENCE, async (t) => {
    const seen = [];
    const { spawn } = ChildProcess.prototype;
    ChildProcess.prototype.spawn = function (options) {
      seen.push({ ...options, stdio: [...options.stdio] });
      return spawn.call(this, options);
    };
    t.after(() => (ChildProcess.prototype.spawn = spawn));

    await misbehaving(t, "well").starting;

    const [{ windowsHide, detached, stdio, shell }] = seen;
    assert.deepEqual([windowsHide, detached, Boolean(shell)], [true, process.platform !== "win32", false]);
    assert.deepEqual(stdio, ["pipe", "pipe", "pipe"]);
  });

  test("a daemon that is not there is NOT_FOUND, with what to do about it", PATIENCE, async () => {
    const missing = await failure(spawnDaemon({ executable: join(tmpdir(), "no such daemon") }));
    const nowhere = await failure(spawnDaemon({ env: { PATH: tmpdir() } }));

    for (const error of [missing, nowhere]) {
      assert.equal(error instanceof DaemonError, true);
      assert.deepEqual([error.code, error.retryable], ["NOT_FOUND", false]);
      assert.match(error.message, /pip install creonowd/);
    }
  });

  test("a daemon that cannot start says why, after as many tries as allowed", PATIENCE, async (t) => {
    const heard = [];
    const { starting, starts } = misbehaving(t, "broken", {
      restart: { ...QUICK, attempts: 2 },
      onStderr: (line) => heard.push(line),
    });

    const error = await failure(starting);

    assert.equal(error.code, "DISCONNECTED");
    assert.match(error.message, /status 3 before it was ready: settings.json is not a JSON object: 墨/);
    assert.equal(error.details.exitCode, 3);
    assert.equal(starts(), 3);
    assert.deepEqual(heard, Array(3).fill("settings.json is not a JSON object: 墨"));
  });

  test("a daemon that starts at the third try is ready", PATIENCE, async (t) => {
    const { starting, starts } = misbehaving(t, "broken twice");

    const daemon = await starting;

    assert.deepEqual([daemon.state, starts()], ["ready", 3]);
  });

  test("a daemon that does not answer is killed and reported", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "mute", { startTimeoutMs: 200, restart: false });

    const error = await failure(starting);

    assert.equal(error.code, "DISCONNECTED");
    assert.match(error.message, /did not answer in time/);
  });

  test("a daemon of another age is refused at once", PATIENCE, async (t) => {
    const { starting, starts } = misbehaving(t, "from the future");

    const error = await failure(starting);

    assert.deepEqual([error.code, error.details.minCompatible, starts()], ["UNSUPPORTED", 99, 1]);
  });

  test("a second daemon on the same user data waits for the first to leave", PATIENCE, async (t) => {
    const first = await real(t);

    const second = real(t, { userData: first.userData, restart: { firstDelayMs: 50 } });
    await first.stop();

    assert.equal((await (await second).call("app:ping")).pong, true);
  });

  test("an option that makes no sense is an error and not a loop", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "well", { cwd: 7 });
    const nowhere = misbehaving(t, "well", { cwd: join(tmpdir(), "no such folder"), restart: { firstDelayMs: 600_000 } });

    assert.equal((await failure(starting)) instanceof TypeError, true);
    assert.equal((await failure(nowhere.starting)).code, "NOT_FOUND");
  });

  test("a listener of stderr that throws is a fault of its own, and the daemon starts", PATIENCE, async (t) => {
    const faults = [];
    const onStderr = () => assert.fail("mine");
    const { starting } = misbehaving(t, "broken twice", { onStderr, onFault: ({ message }) => faults.push(message) });

    const daemon = await starting;

    assert.equal(daemon.state, "ready");
    assert.deepEqual([...new Set(faults)], ["mine"]);
  });

  test("each pause before the next start is twice as long, to a limit", () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 50].map((failures) => delayAfter(failures));

    assert.deepEqual(pauses, [0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    assert.equal(delayAfter(3, { firstDelayMs: 1, longestDelayMs: 3 }), 3);
  });
});

describe("calling", () => {
  const faults = [];
  let harness;
  before(async () => {
    const env = { CREONOW_MAX_IN_FLIGHT: "8" };
    harness = await startHarness({ executable: COMMAND, env, onFault: (error) => faults.push(error.message) });
  });
  after(() => harness.stop());

  test("a failure carries its code, its details and whether to try again", PATIENCE, async () => {
    const { daemon } = harness;

    const misfit = await failure(daemon.call("project:create", { rootPath: 7 }));
    const late = await failure(daemon.call("e2e:sleep", { ms: 600_000 }, { timeoutMs: 20 }));

    assert.deepEqual([misfit.code, misfit.retryable], ["INVALID_ARGUMENT", false]);
    assert.equal(misfit.details.field, "rootPath");
    assert.deepEqual([late.code, late.retryable], ["TIMEOUT", true]);
  });

  test("`invoke` answers the envelope of the same call", PATIENCE, async () => {
    const { daemon } = harness;

    const well = await daemon.invoke("app:ping");
    const ill = await daemon.invoke("project:setCurrent", { projectId: "prj_none" });

    assert.deepEqual([well.ok, well.data.pong], [true, true]);
    assert.deepEqual([ill.ok, ill.error.code, "retryable" in ill.error], [false, "NOT_FOUND", false]);
  });

  test("an aborted call is cancelled in the daemon", PATIENCE, async () => {
    const { daemon } = harness;
    const [before, during] = [new AbortController(), new AbortController()];

    before.abort();
    const early = failure(daemon.call("e2e:sleep", { ms: 600_000 }, { signal: before.signal }));
    const running = failure(daemon.call("e2e:sleep", { ms: 600_000 }, { signal: during.signal }));
    const { channels } = await daemon.call("app:metrics");
    during.abort();

    assert.equal(channels["e2e:sleep"].inFlight, 1);
    assert.deepEqual([(await early).code, (await running).code], ["CANCELED", "CANCELED"]);
    assert.equal((await daemon.call("app:metrics")).channels["e2e:sleep"].inFlight, 0);
  });

  test("progress reaches the call that asked for it", PATIENCE, async () => {
    const { daemon } = harness;
    const [mine, others] = [[], []];

    await Promise.all([
      daemon.call("e2e:sleep", { ms: 20 }, { onProgress: (value) => mine.push(value) }),
      daemon.call("e2e:sleep", { ms: 20 }, { onProgress: (value) => others.push(value) }),
    ]);

    assert.deepEqual(mine.map(({ done }) => done), [...Array(10).keys()]);
    assert.equal(others.length, 10);
  });

  test("a reply of nine megabytes and one of many bytes per character arrive whole", PATIENCE, async () => {
    const { daemon } = harness;
    const value = "长夜将尽。🖋️𠮷\n".repeat(330_000);

    const echoed = await daemon.call("e2e:echo", { value });

    assert.equal(echoed.value === value, true);
  });

  test("a message over the limit is refused here and leaves the connection alone", PATIENCE, async () => {
    const { daemon } = harness;
    const limitBytes = daemon.info.limits.maxMessageBytes;

    const over = await failure(daemon.call("e2e:echo", { value: "x".repeat(limitBytes) }));
    const room = limitBytes - (over.details.sizeBytes - limitBytes);
    const exact = await daemon.call("e2e:echo", { value: "x".repeat(room) });
    const byOne = await failure(daemon.call("e2e:echo", { value: "x".repeat(room + 1) }));

    assert.deepEqual([over.code, over.details.limitBytes], ["IPC_PAYLOAD_TOO_LARGE", 10 * 1024 * 1024]);
    assert.equal(exact.value.length, room);
    assert.deepEqual(byOne.details, { limitBytes, sizeBytes: limitBytes + 1 });
    assert.equal((await daemon.call("app:ping")).pong, true);
  });

  test("what JSON cannot hold is refused by name, and never sent as something else", PATIENCE, async () => {
    const { daemon } = harness;
    const cyclic = {};
    cyclic.self = cyclic;
    const deep = Array.from({ length: 100_000 }).reduce((inner) => [inner], 1);
    const garbage = [() => {}, Symbol("s"), 10n, NaN, Infinity, new Map(), new Date(), cyclic, deep];

    for (const value of garbage) {
      const error = await failure(daemon.call("e2e:echo", { value }));

      assert.equal(error.code, "INVALID_ARGUMENT");
    }
    for (const payload of ["text", 7, true, [], new Map(), () => {}]) {
      assert.equal((await failure(daemon.call("e2e:echo", payload))).code, "INVALID_ARGUMENT");
    }
    assert.deepEqual(await daemon.call("e2e:echo", { value: { gone: undefined } }), { value: {} });
    assert.deepEqual(await daemon.call("e2e:echo", null), { value: null });
  });

  test("past the limit in flight the next call gets IPC_BACKPRESSURE, and all are answered", PATIENCE, async () => {
    const { daemon } = harness;

    const calls = Array.from({ length: 50 }, () => daemon.invoke("e2e:sleep", { ms: 50 }));
    const answers = await Promise.all(calls);

    const codes = answers.filter(({ ok }) => !ok).map(({ error }) => error.code);
    assert.equal(answers.filter(({ ok }) => ok).length, 8);
    assert.deepEqual(codes, Array(42).fill("IPC_BACKPRESSURE"));
  });

  test("the daemon calls back: answers, failures, cancellation, and what nobody handles", PATIENCE, async () => {
    const { daemon } = harness;
    faults.length = 0;
    const told = new Promise((resolve) => {
      daemon.handle("host:slow", (_params, { signal }) => new Promise(() => (signal.onabort = resolve)));
    });
    const ask = (method, params = {}, timeoutMs = 5000) => daemon.call("e2e:callback", { method, params, timeoutMs });
    const forget = daemon.handle("host:echo", async (params) => ({ params }));
    daemon.handle("host:fails", () => assert.fail("sk-inside"));
    daemon.handle("host:odd", () => new Map());

    assert.deepEqual((await ask("host:echo", { query: "林远" })).value, { params: { query: "林远" } });
    forget();
    for (const method of ["host:echo", "host:fails", "host:odd", "host:unknown"]) {
      assert.equal((await failure(ask(method))).code, "HOST_ERROR");
    }
    assert.equal((await failure(ask("host:slow", {}, 20))).code, "TIMEOUT");
    await told;
    assert.deepEqual(faults, ["sk-inside", "JSON cannot hold a Map; send plain objects, lists, texts and numbers."]);
  });

  test("a listener that throws keeps no other from hearing", PATIENCE, async () => {
    const { daemon } = harness;
    faults.length = 0;
    const heard = [];
    daemon.on("novel:changed", () => assert.fail("mine"));
    const forget = daemon.on("novel:changed", ({ seq }) => heard.push(seq));

    await daemon.call("e2e:notify", { method: "novel:changed", count: 2 });
    forget();
    await daemon.call("e2e:notify", { method: "novel:changed" });

    assert.deepEqual([heard.length, faults], [2, ["mine", "mine", "mine"]]);
    assert.throws(() => daemon.on("novel:changed", "no function"), TypeError);
    assert.throws(() => daemon.handle("host:echo"), TypeError);
  });

  test("positions are UTF-16 from end to end", PATIENCE, async () => {
    const { projectId } = await harness.makeProject();
    const text = "🖋️𠮷说：「走。」";
    const document = { projectId, documentId: "第一章.md" };

    const whole = await harness.call("context:document:sync", { ...document, version: 1, text });
    const from = text.indexOf("说");
    const edited = await harness.call("context:document:sync", {
      ...document,
      baseVersion: 1,
      version: 2,
      edits: [{ from, to: from + 1, text: "𠮷𠮷" }],
    });

    assert.equal(whole.length, text.length);
    assert.equal(edited.length, text.replace("说", "𠮷𠮷").length);
  });
});

describe("dying", () => {
  test("every pending call settles before the daemon is back; those made meanwhile wait and succeed", PATIENCE, async (t) => {
    const daemon = await real(t);
    const first = daemon.pid;
    const order = [];
    const pending = Array.from({ length: 100 }, () => daemon.call("e2e:sleep", { ms: 600_000 }));
    const settled = Promise.all(pending.map(failure)).then((errors) => (order.push("settled"), errors));
    daemon.onState((state) => order.push(state));
    const down = becomes(daemon, "restarting");
    await daemon.call("app:ping");

    process.kill(first, "SIGKILL");
    const errors = await settled;
    await down;
    const answers = await Promise.all([..."abc"].map((value) => daemon.call("e2e:echo", { value })));

    assert.deepEqual(order, ["settled", "restarting", "ready"]);
    assert.deepEqual([...new Set(errors.map(({ code, retryable }) => `${code} ${retryable}`))], ["DISCONNECTED true"]);
    assert.deepEqual(answers.map(({ value }) => value), ["a", "b", "c"]);
    assert.notEqual(daemon.pid, first);
  });

  test("a waiting call can be cancelled, runs out of patience, and does not queue without end", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "well", { waitMs: 100, restart: { attempts: 1, firstDelayMs: 600_000, longestDelayMs: 600_000 } });
    const daemon = await starting;
    const down = becomes(daemon, "restarting");
    const controller = new AbortController();

    await failure(daemon.call("fake:die"));
    await down;
    const canceled = failure(daemon.call("any:thing", {}, { signal: controller.signal }));
    const late = failure(daemon.call("any:thing"));
    controller.abort();
    const crowd = Array.from({ length: 300 }, () => failure(daemon.call("any:thing")));

    assert.equal((await canceled).code, "CANCELED");
    assert.deepEqual([(await late).code, (await late).retryable], ["DISCONNECTED", true]);
    const codes = (await Promise.all(crowd)).map(({ code }) => code);
    assert.equal(codes.filter((code) => code === "IPC_BACKPRESSURE").length, 300 - 255);
  });

  test("listeners, handlers and what was watched survive; what cannot be restored is told", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK });
    const [kept, ended, lost] = await Promise.all(["长夜", "短昼", "残卷"].map((name) => harness.makeProject(name)));
    for (const { projectId } of [kept, ended, lost]) {
      await harness.call("context:creonow:ensure", { projectId });
      await harness.call("context:creonow:watch:start", { projectId });
    }
    await harness.call("context:creonow:watch:stop", { projectId: ended.projectId });
    await harness.call("project:delete", { projectId: lost.projectId });
    harness.daemon.handle("host:echo", () => "still here");

    harness.kill();
    const { restarts, restored } = await harness.event("$/restarted");
    writeFileSync(join(kept.rootPath, ".creonow", "rules", "style.md"), "少用形容词。");
    const changed = await harness.event("context:creonow:changed", {
      where: ({ paths }) => paths.includes(".creonow/rules/style.md"),
    });

    const [again, gone] = restored;
    assert.deepEqual([restarts, restored.length, again.ok, gone.ok], [1, 2, true, false]);
    assert.deepEqual([again.payload, gone.error.code], [{ projectId: kept.projectId }, "NOT_FOUND"]);
    assert.equal(changed.projectId, kept.projectId);
    assert.equal((await harness.call("e2e:callback", { method: "host:echo" })).value, "still here");
  });

  test("a source of the main process is asked again after a restart", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK });
    const { projectId } = await harness.makeProject("长夜", { "第一章.md": "林远推开门。\n" });
    const place = { projectId, documentId: "第一章.md", cursorPosition: 6, skillId: "unknown:any" };
    const chunks = [{ source: "kg:林远", content: "林远怕水。", score: 0.9 }];
    harness.daemon.handle("context:source:fetch", ({ name }) => ({ chunks: name === "kg" ? chunks : [] }));
    await harness.call("context:source:register", { layer: "retrieved", name: "kg", kind: "kg" });

    const before = await harness.call("context:assemble", place);
    harness.kill();
    const { restored } = await harness.event("$/restarted");
    const after = await harness.call("context:assemble", place);

    assert.deepEqual(restored.map(({ channel, ok }) => [channel, ok]), [["context:source:register", true]]);
    assert.equal(before.prompt.includes("林远怕水。"), true);
    assert.equal(after.promptHash, before.promptHash);
  });

  test("a daemon that keeps dying is given up, and can be started again by hand", PATIENCE, async (t) => {
    const { starting, starts } = misbehaving(t, "well", { restart: { ...QUICK, attempts: 2 } });
    const daemon = await starting;
    const given = becomes(daemon, "failed");

    daemon.onState((state) => state === "ready" && failure(daemon.call("fake:die")));
    await failure(daemon.call("fake:die"));
    await given;
    const refused = await failure(daemon.call("any:thing"));
    const born = starts();
    await daemon.restart();

    assert.deepEqual([refused.code, refused.retryable, refused.details.exitCode], ["DISCONNECTED", true, 9]);
    assert.equal(born, 3);
    assert.equal(starts() > born, true);
  });

  test("with `restart: false` a death is final", PATIENCE, async (t) => {
    const daemon = await misbehaving(t, "well", { restart: false }).starting;
    const given = becomes(daemon, "failed");

    await failure(daemon.call("fake:die"));
    await given;

    await assert.rejects(daemon.ready(), { code: "DISCONNECTED" });
  });

  test("a daemon that closes its output is replaced, though its process lives", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "well");
    const daemon = await starting;
    const first = daemon.pid;

    const error = await failure(daemon.call("fake:deafen"));
    const { pid } = await daemon.call("any:thing");

    assert.equal(error.code, "DISCONNECTED");
    assert.notEqual(pid, first);
  });

  test("under load nothing is lost, mixed up or left hanging", PATIENCE, async (t) => {
    const daemon = await real(t);
    let killed = 0;
    const counts = { answered: 0, DISCONNECTED: 0, SHUTTING_DOWN: 0 };
    const work = async (worker) => {
      for (let round = 0; round < 40; round += 1) {
        const value = `${worker}-${round}-${"墨".repeat(500)}`;
        const { ok, data, error } = await daemon.invoke("e2e:echoInTask", { value });
        assert.equal(ok ? data.value : value, value);
        counts[ok ? "answered" : error.code] += 1;
        if (worker === 0 && round % 20 === 10 && daemon.pid) killed += process.kill(daemon.pid, "SIGKILL");
      }
    };

    await Promise.all(Array.from({ length: 20 }, (_, worker) => work(worker)));

    assert.equal(killed, 2);
    assert.equal(counts.answered + counts.DISCONNECTED + counts.SHUTTING_DOWN, 20 * 40);
    assert.equal(counts.answered > 400, true);
  });
});

describe("stopping", () => {
  test("what runs is answered, what comes late is refused, and the process ends by itself", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND });
    const running = harness.call("e2e:sleep", { ms: 200 });
    await harness.call("app:ping");

    const stopping = harness.daemon.stop();
    const late = await failure(harness.call("app:ping"));
    await stopping;

    assert.deepEqual(await running, { slept: 200 });
    assert.deepEqual([late.code, harness.daemon.state], ["SHUTTING_DOWN", "stopped"]);
    assert.equal((await harness.log("daemon_stopped")).reason, "shutdown requested");
    await assert.rejects(harness.daemon.restart(), { code: "SHUTTING_DOWN" });
    await Promise.all([harness.daemon.stop(), harness.daemon.stop()]);
  });

  test("the daemon of an app that crashed ends by itself", PATIENCE, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "creonow 崩 "));
    t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    const script = `import { spawnDaemon } from ${JSON.stringify(new URL("../index.mjs", import.meta.url).href)};
      await spawnDaemon(${JSON.stringify({ executable: COMMAND, userData: folder })});
      process.kill(process.pid, "SIGKILL");`;

    const [, signal] = await once(spawn(process.execPath, ["--input-type=module", "-e", script]), "exit");
    const log = () => readFileSync(join(folder, "logs", "main.log"), "utf8");
    while (existsSync(join(folder, "run", "endpoint.json")) || !log().includes("daemon_stopped")) await pause(LOOK_AGAIN_MS);

    assert.equal(signal, "SIGKILL");
  });

  test("a tree that will not end is killed, children and all", PATIENCE, async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const child = once(server, "connection");
    const { starting } = misbehaving(t, "stubborn", { env: { PORT: String(server.address().port) } });
    const daemon = await starting;
    const [line] = await child;
    const orphaned = once(line.on("error", () => {}).resume(), "close");

    await daemon.stop({ graceMs: 100 });
    await orphaned;

    assert.equal(daemon.state, "stopped");
  });

  test("the children of a daemon that crashed do not outlive it", PATIENCE, async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const child = once(server, "connection");
    const { starting } = misbehaving(t, "stubborn", { env: { PORT: String(server.address().port) }, restart: false });
    const daemon = await starting;
    const [line] = await child;
    const orphaned = once(line.on("error", () => {}).resume(), "close");
    const given = becomes(daemon, "failed");

    await failure(daemon.call("fake:die"));
    await orphaned;

    await given;
  });

  test("a daemon that is still starting, or waits to start again, is stopped at once", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "well", { restart: { attempts: 5, firstDelayMs: 600_000, longestDelayMs: 600_000 } });
    const daemon = await starting;
    const down = becomes(daemon, "restarting");
    await failure(daemon.call("fake:die"));
    await down;
    const waiting = failure(daemon.call("any:thing"));

    await daemon.stop();

    assert.equal((await waiting).code, "SHUTTING_DOWN");
    assert.equal(daemon.state, "stopped");
  });

  test("a restart that was asked for loses no call", PATIENCE, async (t) => {
    const daemon = await real(t);
    const first = daemon.pid;

    const again = daemon.restart();
    const answers = [];
    for (const value of "abc") answers.push(await daemon.call("e2e:echoInTask", { value }));
    await again;

    assert.deepEqual(answers.map(({ value }) => value), ["a", "b", "c"]);
    assert.notEqual(daemon.pid, first);
  });
});
