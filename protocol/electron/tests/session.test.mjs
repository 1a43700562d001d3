// The calls of the main process: answers, failures, limits, events, calls back.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { Subscriptions } from "../session.mjs";
import { failure } from "./daemonFixtures.mjs";

const PATIENCE = { timeout: 60_000 };

describe("a session", () => {
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
    const canceled = new Promise((resolve) => {
      daemon.handle("host:slow", (_params, { signal }) => new Promise(() => signal.addEventListener("abort", resolve)));
    });
    const ask = (method, params = {}, timeoutMs = 5000) => daemon.call("e2e:callback", { method, params, timeoutMs });
    const unsubscribe = daemon.handle("host:echo", async (params) => ({ params }));
    daemon.handle("host:fails", () => assert.fail("sk-inside"));
    daemon.handle("host:odd", () => new Map());

    assert.deepEqual((await ask("host:echo", { query: "林远" })).value, { params: { query: "林远" } });
    unsubscribe();
    for (const method of ["host:echo", "host:fails", "host:odd", "host:unknown"]) {
      assert.equal((await failure(ask(method))).code, "HOST_ERROR");
    }
    assert.equal((await failure(ask("host:slow", {}, 20))).code, "TIMEOUT");
    await canceled;
    assert.deepEqual(faults, ["sk-inside", "JSON cannot hold a Map; send plain objects, lists, texts and numbers."]);
  });

  test("a listener that throws does not stop the others", PATIENCE, async () => {
    const { daemon } = harness;
    faults.length = 0;
    const received = [];
    daemon.on("novel:changed", () => assert.fail("mine"));
    const unsubscribe = daemon.on("novel:changed", ({ seq }) => received.push(seq));

    await daemon.call("e2e:notify", { method: "novel:changed", count: 2 });
    unsubscribe();
    await daemon.call("e2e:notify", { method: "novel:changed" });

    assert.deepEqual([received.length, faults], [2, ["mine", "mine", "mine"]]);
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

const WATCH = "context:creonow:watch";
const SOURCE = "context:source";

/** Record these calls, each [channel, payload]. */
function record(...calls) {
  const subscriptions = new Subscriptions();
  for (const [channel, payload] of calls) subscriptions.record(channel, JSON.stringify(payload));
  return subscriptions;
}

function remaining(subscriptions) {
  return subscriptions.entries().map(({ channel, text }) => [channel, JSON.parse(text)]);
}

describe("what is made again after a restart", () => {
  test("what was begun and not ended remains, in order", () => {
    const subscriptions = record(
      [`${WATCH}:start`, { projectId: "a" }],
      [`${WATCH}:start`, { projectId: "b" }],
      ["app:ping", {}],
      [`${WATCH}:stop`, { projectId: "a" }],
      [`${WATCH}:stop`, { projectId: "never begun" }],
    );

    assert.deepEqual(remaining(subscriptions), [[`${WATCH}:start`, { projectId: "b" }]]);
  });

  test("what was begun twice remains once, as it was begun last", () => {
    const source = { layer: "rules", name: "kg", kind: "kg" };
    const subscriptions = record(
      [`${SOURCE}:register`, { ...source, timeoutMs: 100 }],
      [`${SOURCE}:register`, { ...source, projectId: "a" }],
      [`${SOURCE}:register`, { ...source, timeoutMs: 200 }],
      [`${SOURCE}:unregister`, { layer: "rules", name: "kg", projectId: "a" }],
    );

    assert.deepEqual(remaining(subscriptions), [[`${SOURCE}:register`, { ...source, timeoutMs: 200 }]]);
  });

  test("an end that names no layer and no project matches all of them", () => {
    const subscriptions = record(
      [`${SOURCE}:register`, { layer: "rules", name: " kg ", kind: "kg" }],
      [`${SOURCE}:register`, { layer: "retrieved", name: "kg", kind: "kg", projectId: "a" }],
      [`${SOURCE}:register`, { layer: "rules", name: "memory", kind: "memory" }],
      [`${WATCH}:start`, { projectId: "a" }],
      [`${SOURCE}:unregister`, { name: "kg" }],
    );

    assert.deepEqual(remaining(subscriptions).map(([, payload]) => payload.name ?? payload.projectId), ["memory", "a"]);
  });

  test("what could not be set up again is removed", () => {
    const subscriptions = record([`${WATCH}:start`, { projectId: "a" }]);

    subscriptions.remove(`${WATCH}:start`, JSON.stringify({ projectId: "a" }));

    assert.deepEqual(remaining(subscriptions), []);
  });
});
