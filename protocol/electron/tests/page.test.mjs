// `window.creonow`: what a page can do, and what it cannot.
import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { RENDERER_CHANNELS } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { assertFailure, nextEvent, openBridge, recordTokens } from "./bridgeFixtures.mjs";
import { openWindow } from "./electron.mjs";

const PATIENCE = { timeout: 60_000 };

describe("a page", () => {
  let harness;
  before(async () => {
    harness = await startHarness({ executable: COMMAND, env: { CREONOW_DEBUG: "true" } });
  });
  after(() => harness.stop());

  test("gets four functions and nothing of Electron, over one gateway", PATIENCE, async (t) => {
    const { window, ipcMain } = openBridge(t, harness.daemon);

    assert.deepEqual(Object.keys(window.creonow), ["invoke", "cancel", "chooseProject", "on"]);
    assert.deepEqual([...ipcMain.handlers.keys()], ["creonow:invoke"]);
  });

  test("calls, and sees an envelope of success or failure", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);

    const well = await window.creonow.invoke("app:ping");
    const ill = await window.creonow.invoke("project:create", { rootPath: 7 });

    assert.deepEqual([Object.keys(well), well.ok, well.data.pong], [["ok", "data"], true, true]);
    assertFailure(ill, "INVALID_ARGUMENT");
    assert.equal(ill.error.details.field, "rootPath");
  });

  test("makes a project by name alone, and of a folder only through the app's own dialogue", PATIENCE, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "creonow 选 "));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const answers = [folder, undefined];
    const { window } = openBridge(t, harness.daemon, { chooseFolder: () => answers.shift() });
    const without = openBridge(t, harness.daemon);

    assertFailure(await window.creonow.invoke("project:create", { rootPath: folder }), "FORBIDDEN");
    const named = await window.creonow.invoke("project:create", { name: "石头记" });
    const chosen = await window.creonow.chooseProject("红楼");

    assert.ok(named.data.rootPath.startsWith(harness.daemon.userData));
    assert.deepEqual([chosen.ok, chosen.data.name, chosen.data.rootPath], [true, "红楼", realpathSync(folder)]);
    assertFailure(await window.creonow.chooseProject(), "CANCELED");
    assertFailure(await without.window.creonow.chooseProject(), "IPC_CHANNEL_FORBIDDEN");
    for (const { projectId } of [named.data, chosen.data]) await harness.call("project:delete", { projectId });
  });

  test("gets an envelope for what Electron cannot copy", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const deep = {};
    for (let at = deep, level = 0; level < 1100; level += 1) at = at.in = {};

    const proxied = await window.creonow.invoke("e2e:echo", { value: new Proxy({ name: "林远" }, {}) });
    const nested = await window.creonow.invoke("e2e:echo", { value: deep });
    const thrown = await window.creonow.invoke("e2e:echo", { value: { get name() { throw new Error("no"); } } });
    const blob = await window.creonow.invoke("e2e:echo", { value: new Blob(["夜"]) });

    assertFailure(proxied, "INVALID_ARGUMENT");
    assert.match(proxied.error.message, /structuredClone\(toRaw/);
    assertFailure(nested, "INVALID_ARGUMENT");
    assert.deepEqual([thrown.data.value, blob.data.value], [{}, {}]);
  });

  test("leaves no listener behind when its process dies", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    await window.creonow.invoke("app:ping");
    const ends = ["destroyed", "render-process-gone"];
    const before = ends.map((end) => window.contents.listenerCount(end));

    for (let crash = 0; crash < 3; crash += 1) {
      window.contents.emit("render-process-gone");
      window.load();
      assert.equal((await window.creonow.invoke("app:ping")).ok, true);
    }

    assert.deepEqual(ends.map((end) => window.contents.listenerCount(end)), before);
  });

  test("has a renderer's rights in the daemon itself", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon, { allow: ["e2e:fail", "e2e:echo"] });

    assertFailure(await window.creonow.invoke("e2e:fail"), "FORBIDDEN");
    assert.equal((await harness.invoke("e2e:fail")).error.code, "INTERNAL");
  });

  test("gets IPC_CHANNEL_FORBIDDEN for what is not listed, whoever checks it", PATIENCE, async (t) => {
    const { window, ipcMain } = openBridge(t, harness.daemon, {});
    const straight = ipcMain.handlers.get("creonow:invoke");
    const event = { sender: window.contents, senderFrame: window.frame };
    const unlisted = ["no:such:channel", "session:grant", "ipc:invoke", "initialize", "exit", "__proto__", "", 7, {}, null];

    const before = window.asked.length;
    for (const channel of unlisted) {
      assertFailure(await window.creonow.invoke(channel, {}), "IPC_CHANNEL_FORBIDDEN");
      assertFailure(await straight(event, channel, {}), "IPC_CHANNEL_FORBIDDEN");
    }
    assert.equal(window.asked.length, before);
    assertFailure(await straight(event), "IPC_CHANNEL_FORBIDDEN");
    assertFailure(await straight(event, "$/subscribe", { event: "secret:event" }), "IPC_CHANNEL_FORBIDDEN");
    assert.throws(() => window.creonow.on("secret:event", () => {}), /no event secret:event/);
    assert.throws(() => window.creonow.on("$/progress", "no function"), /must be a function/);
  });

  test("sends garbage and gets envelopes, and the next call works", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const cyclic = { list: [] };
    cyclic.list.push(cyclic);
    const values = [() => {}, Symbol("s"), 10n, NaN, cyclic, new Map(), new Date(), new Uint8Array(3), new WeakMap()];
    const payloads = ["text", 7, 10n, true, [], () => {}, new Map()];

    for (const value of values) {
      assertFailure(await window.creonow.invoke("e2e:echo", { value }), "INVALID_ARGUMENT");
    }
    for (const payload of payloads) {
      assertFailure(await window.creonow.invoke("e2e:echo", payload), "INVALID_ARGUMENT");
    }
    for (const nothing of [undefined, null, {}]) {
      assert.deepEqual(await window.creonow.invoke("e2e:echo", nothing), { ok: true, data: { value: null } });
    }
    const [odd, kept] = [{ _meta: "no object" }, { value: { gone: undefined, kept: 1 } }];
    assertFailure(await window.creonow.invoke("e2e:echo", odd), "INVALID_ARGUMENT");
    assert.deepEqual((await window.creonow.invoke("e2e:echo", kept)).data, { value: { kept: 1 } });
  });

  test("that speaks to the gateway without our preload gets envelopes, whatever it says", PATIENCE, async (t) => {
    const { window, ipcMain } = openBridge(t, harness.daemon);
    const straight = ipcMain.handlers.get("creonow:invoke");
    const event = { sender: window.contents, senderFrame: window.frame };
    const odd = [undefined, null, 7, 10n, "text", [], {}, { page: {} }, { key: {} }, { event: {} }, new Map(), new Error("odd")];

    for (const channel of ["$/page", "$/cancel", "$/subscribe", "$/unsubscribe", "e2e:echo"]) {
      for (const [payload, call] of odd.flatMap((each) => odd.map((other) => [each, other]))) {
        const { ok, error } = await straight(event, channel, payload, call);

        assert.equal(ok || ["INVALID_ARGUMENT", "IPC_CHANNEL_FORBIDDEN"].includes(error.code), true, error?.code);
      }
    }
    assert.equal((await window.creonow.invoke("app:ping")).ok, true);
  });

  test("sends ten megabytes and gets IPC_PAYLOAD_TOO_LARGE; nine are fine", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const megabyte = "x".repeat(1024 * 1024);

    const refused = await window.creonow.invoke("e2e:echo", { value: megabyte.repeat(10) });
    const taken = await window.creonow.invoke("e2e:echo", { value: megabyte.repeat(9) });

    assertFailure(refused, "IPC_PAYLOAD_TOO_LARGE");
    assert.equal(refused.error.details.limitBytes, 10 * 1024 * 1024);
    assert.equal(taken.data.value.length, 9 * 1024 * 1024);
  });

  test("sends a string cut inside an emoji, and gets U+FFFD", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);

    const cut = await window.creonow.invoke("e2e:echo", { value: { "键\udd8b": "笔\ud83d" } });

    assert.deepEqual(cut, { ok: true, data: { value: { "键\ufffd": "笔\ufffd" } } });
  });

  test("cancels by the key of its call, and no one else's", PATIENCE, async (t) => {
    const { window, ipcMain, bridge } = openBridge(t, harness.daemon);
    const other = openWindow(ipcMain, bridge.webPreferences);
    await Promise.all([window, other].map((w) => w.creonow.invoke("app:ping")));
    const [mine, twin, theirs] = [window, window, other].map((w) =>
      w.creonow.invoke("e2e:sleep", { ms: 600_000, _meta: { timeoutMs: 30_000 } }, { key: "draft" }),
    );
    const plain = window.creonow.invoke("e2e:echo", { value: 1 });

    const first = await window.creonow.cancel("draft");
    const again = await window.creonow.cancel("draft");
    await Promise.all([mine, twin]);
    const untouched = await Promise.race([theirs, other.creonow.invoke("app:ping")]);

    assert.deepEqual([first.data, (await window.creonow.cancel("never used")).data], [{ canceled: 2 }, { canceled: 0 }]);
    assert.equal(again.ok, true);
    assertFailure(await mine, "CANCELED");
    assertFailure(await twin, "CANCELED");
    assert.deepEqual([untouched.ok, (await plain).ok], [true, true]);
    await other.creonow.cancel("draft");
    assertFailure(await theirs, "CANCELED");
  });

  test("hears the events it listens to, in order, and only its own", PATIENCE, async (t) => {
    const { window, ipcMain, bridge } = openBridge(t, harness.daemon);
    const other = openWindow(ipcMain, bridge.webPreferences);
    const [received, strange] = [[], []];
    window.creonow.on("novel:changed", () => assert.fail("one that throws"));
    const unsubscribe = window.creonow.on("novel:changed", (fields) => received.push(fields));
    other.creonow.on("novel:changed", (fields) => strange.push(fields));

    await window.creonow.invoke("e2e:notify", { method: "novel:changed", params: { chapter: "七" }, count: 20 });
    await other.creonow.invoke("app:ping");
    unsubscribe();
    await window.creonow.invoke("e2e:notify", { method: "novel:changed" });

    assert.deepEqual(received.map(({ seq }) => seq), Array.from({ length: 20 }, (_, i) => i + 1));
    assert.deepEqual(Object.keys(received[0]).sort(), ["chapter", "seq", "ts"]);
    assert.deepEqual(strange, []);
    assert.equal(window.complaints.length, 21);
  });

  test("that listens no more is sent nothing", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const unsubscribe = window.creonow.on("novel:changed", () => {});

    unsubscribe();
    unsubscribe();
    await window.creonow.invoke("e2e:notify", { method: "novel:changed" });

    assert.equal(window.seen.filter((message) => Array.isArray(message)).length, 0);
  });

  test("asks for progress and gets it", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const steps = [];
    window.creonow.on("$/progress", ({ token, value }) => steps.push([token, value.done]));

    await window.creonow.invoke("e2e:sleep", { ms: 20, _meta: { progressToken: "mine" } });

    assert.deepEqual(steps, Array.from({ length: 10 }, (_, done) => ["mine", done]));
  });

  test("watches files for as long as it is open", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const { projectId, rootPath } = await harness.makeProject("看守");
    await window.creonow.invoke("context:creonow:ensure", { projectId });
    await window.creonow.invoke("context:creonow:watch:start", { projectId });
    const watching = async () => (await harness.call("context:creonow:status", { projectId })).watching;
    const changed = nextEvent(window, "context:creonow:changed");

    writeFileSync(join(rootPath, ".creonow", "settings", "世界观.md"), "没有魔法。");
    const event = await changed;
    const before = await watching();
    window.contents.emit("destroyed");
    while (await watching());

    assert.equal(event.projectId, projectId);
    assert.equal(before, true);
  });

  test("registers a file that the main process makes when the page looks at it", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const { projectId } = await harness.makeProject("素材");
    const place = { projectId, conversationId: "con-1" };
    t.after(harness.handle("context:files:materialise", ({ recipe }) => ({ content: `第${recipe.round}轮` })));

    const lazy = { ...place, kind: "artifact", hint: "第九轮", recipe: { type: "host", round: 9 } };
    const registered = await window.creonow.invoke("context:files:register", lazy);
    const { data } = await window.creonow.invoke("context.read", { ...place, id: registered.data.ref.id });

    assert.equal(data.content, "第9轮");
  });

  test("that is loaded anew leaves its old calls and subscriptions behind", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const received = [];
    window.creonow.on("novel:changed", () => received.push("old"));
    const old = window.creonow.invoke("e2e:sleep", { ms: 600_000, _meta: { timeoutMs: 600_000 } });
    await window.creonow.invoke("app:ping");

    window.load();
    const left = await old;
    await window.creonow.invoke("e2e:notify", { method: "novel:changed" });

    assertFailure(left, "DISCONNECTED");
    assert.deepEqual(received, []);
    assert.equal((await window.creonow.invoke("app:ping")).ok, true);
  });

  test("is never shown a token or a path of user data", PATIENCE, async (t) => {
    const secrets = [];
    const { window } = openBridge(t, recordTokens(harness.daemon, secrets));

    for (const channel of [...RENDERER_CHANNELS, "session:grant", "e2e:fail"]) {
      await window.creonow.invoke(channel, {});
      await window.creonow.invoke(channel, { projectId: "prj_none", token: 7 });
    }

    const shown = JSON.stringify(window.seen);
    assert.equal(secrets.length, 1);
    for (const secret of [...secrets, harness.userData]) {
      assert.equal(shown.includes(JSON.stringify(secret).slice(1, -1)), false);
    }
  });

  test("keeps its rights when its token runs out", PATIENCE, async (t) => {
    const tokens = [];
    const { window } = openBridge(t, recordTokens(harness.daemon, tokens));
    await window.creonow.invoke("app:ping");

    await harness.call("session:revoke", { token: tokens[0] });
    const answers = await Promise.all([1, 2, 3].map((value) => window.creonow.invoke("e2e:echo", { value })));

    assert.deepEqual(answers.map(({ data }) => data?.value), [1, 2, 3]);
    assert.equal(tokens.length, 2);
  });
});
