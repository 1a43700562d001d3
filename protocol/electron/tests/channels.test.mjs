// A round trip through every channel; each answer is checked against its schema.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createBridge, EVENTS, OWNER_CHANNELS, RENDERER_CHANNELS } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { makeIpcMain, openWindow } from "./electron.mjs";
import { FILES, SAMPLES } from "./samples.mjs";
import { contract, misfits } from "./schema.mjs";

const PATIENCE = { timeout: 120_000 };
const LIFECYCLE = ["initialize", "shutdown", "exit"];
const METHODS = new Map(contract.methods.map((method) => [method.name, method]));

/** Call from a page what a page may call, and from the main process the rest. */
function caller(window, daemon) {
  return (channel, payload) =>
    RENDERER_CHANNELS.includes(channel) ? window.creonow.invoke(channel, payload) : daemon.invoke(channel, payload);
}

describe("every channel of every family", () => {
  let harness, bridge, invoke;
  before(async () => {
    harness = await startHarness({ executable: COMMAND, debug: true, env: { CREONOW_DOCUMENT_WRITES: "1" } });
    const ipcMain = makeIpcMain();
    bridge = createBridge(ipcMain, harness.daemon);
    invoke = caller(openWindow(ipcMain, bridge.webPreferences), harness.daemon);
  });
  after(async () => {
    bridge.dispose();
    await harness.stop();
  });

  test("has a sample", () => {
    const sampled = new Set(SAMPLES.map(({ channel }) => channel));
    const missing = [...METHODS.keys()].filter((name) => !LIFECYCLE.includes(name) && !sampled.has(name));

    assert.deepEqual(missing, [], "add a line for this channel to protocol/electron/tests/samples.mjs");
  });

  test("makes its round trip, and answers what the contract declares", PATIENCE, async (t) => {
    const story = { ...(await harness.makeProject("长夜", FILES)), data: {} };

    for (const { channel, payload, check } of SAMPLES) {
      await t.test(channel, async () => {
        const envelope = await invoke(channel, typeof payload === "function" ? payload(story) : payload);

        assert.equal(envelope.ok, true, JSON.stringify(envelope));
        assert.deepEqual(misfits(envelope.data, METHODS.get(channel).result.schema), []);
        assert.equal(Boolean(check(envelope.data, story)), true, JSON.stringify(envelope.data).slice(0, 1000));
        story.data[channel] = envelope.data;
      });
    }
  });

  test("answers an envelope to every channel, whatever the payload", PATIENCE, async () => {
    const payloads = [undefined, "text", 7, [], { projectId: 7 }, { projectId: "prj_none", path: null }];

    for (const channel of [...RENDERER_CHANNELS, ...OWNER_CHANNELS]) {
      for (const payload of payloads) {
        const { ok, error } = await invoke(channel, payload);

        assert.equal(ok === true || typeof error.code === "string", true, channel);
        assert.notEqual(error?.code, "INTERNAL", `${channel} ${JSON.stringify(payload)} ${error?.message}`);
      }
    }
  });
});

test("the generated lists hold every channel and event of the contract once", () => {
  const named = (role) => contract.methods.filter((method) => method["x-role"] === role).map(({ name }) => name);
  const sealed = ["initialize", "ipc:invoke", "shutdown", "exit", "session:grant", "session:revoke"];
  const open = (names) => names.filter((name) => !sealed.includes(name));

  assert.deepEqual([...RENDERER_CHANNELS], open(named("renderer")));
  assert.deepEqual([...OWNER_CHANNELS], open(named("owner")));
  assert.deepEqual([...EVENTS], contract["x-notifications"].map(({ name }) => name));
});
