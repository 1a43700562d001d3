// `createBridge`: which pages it answers, what an app may allow, and what is left after `dispose`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { createBridge, DEFAULT_ORIGINS } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { Connection, dial, initialize } from "../connection.mjs";
import { assertFailure, openBridge, recordTokens, WITH_E2E } from "./bridgeFixtures.mjs";
import { makeIpcMain, openWindow } from "./electron.mjs";

const PATIENCE = { timeout: 60_000 };

describe("the bridge", () => {
  let harness;
  before(async () => {
    harness = await startHarness({ executable: COMMAND });
  });
  after(() => harness.stop());

  test("answers pages of the app, and no other", PATIENCE, async (t) => {
    const trusted = ["file:///C:/app/index.html", "app://creonow/", "app:/index.html"];
    const strangers = [
      "http://localhost:5173/",
      "https://app/",
      "data:text/html,<script>",
      "blob:file:///0",
      "about:blank",
      "file://server/share/page.html",
      "apps://creonow/",
      "",
      undefined,
    ];

    for (const url of trusted) {
      const { window } = openBridge(t, harness.daemon, undefined, url);
      assert.equal((await window.creonow.invoke("app:ping")).ok, true);
    }
    for (const url of strangers) {
      const { window } = openBridge(t, harness.daemon, undefined, "app://creonow/");
      window.frame = { url, parent: null };
      assertFailure(await window.creonow.invoke("app:ping"), "FORBIDDEN");
    }
  });

  test("answers no frame within a page, and none that has gone", PATIENCE, async (t) => {
    const { window } = openBridge(t, harness.daemon);
    const disposed = { get url() { throw new Error("Render frame was disposed"); } };

    for (const frame of [{ url: "app://creonow/", parent: { url: "app://creonow/" } }, null, undefined, disposed]) {
      window.frame = frame;
      assertFailure(await window.creonow.invoke("app:ping"), "FORBIDDEN");
    }
  });

  test("answers the origins that the app lists, exactly", PATIENCE, async (t) => {
    const origins = [...DEFAULT_ORIGINS, "http://localhost:5173"];
    const verdicts = { "http://localhost:5173/index.html": true, "http://localhost:51730/": false, "https://localhost:5173/": false };

    for (const [url, trusted] of Object.entries(verdicts)) {
      const { window } = openBridge(t, harness.daemon, { origins }, url);
      assert.equal((await window.creonow.invoke("app:ping")).ok, trusted);
    }
    for (const origin of ["*", "http:", "https:", "localhost:5173/x", "http://a/path", "", "file"]) {
      assert.throws(() => createBridge(makeIpcMain(), harness.daemon, { origins: [origin] }), TypeError);
    }
  });

  test("lets an app narrow the list, for the page, the gateway and the daemon alike", PATIENCE, async (t) => {
    const tokens = [];
    const { window, bridge, ipcMain } = openBridge(t, recordTokens(harness.daemon, tokens), { allow: ["app:ping"], events: [] });
    const unsuspecting = openWindow(ipcMain, { preload: bridge.webPreferences.preload });

    assert.equal((await window.creonow.invoke("app:ping")).ok, true);
    for (const each of [window, unsuspecting]) {
      assertFailure(await each.creonow.invoke("app:health"), "IPC_CHANNEL_FORBIDDEN");
    }
    assert.throws(() => window.creonow.on("$/progress", () => {}), /no event/);
    const { socket } = await dial(harness.userData);
    const thief = new Connection(socket, socket);
    t.after(() => thief.close());
    await initialize(thief, { token: tokens[0] });
    await assert.rejects(thief.call("app:health", "{}"), { code: "FORBIDDEN" });
    assert.deepEqual(bridge.webPreferences.additionalArguments, ["--creonow-allow=app:ping", "--creonow-events="]);
  });

  test("lets no app hand out the connection itself, or a token", () => {
    for (const channel of ["session:grant", "session:revoke", "ipc:invoke", "initialize", "shutdown", "exit", "viewer:open"]) {
      assert.throws(() => createBridge(makeIpcMain(), harness.daemon, { allow: [channel] }), TypeError);
    }
  });

  test("asks Electron for a sandbox, and by default for nothing else", () => {
    const ipcMain = makeIpcMain();

    const { webPreferences, dispose } = createBridge(ipcMain, harness.daemon);
    dispose();

    assert.deepEqual(webPreferences, {
      preload: webPreferences.preload,
      additionalArguments: [],
      contextIsolation: true,
      nodeIntegration: false,
      sandbox: true,
    });
    assert.match(readFileSync(webPreferences.preload, "utf8"), /^"use strict";/);
  });

  test("that is disposed of answers nobody, and makes room for another", PATIENCE, async (t) => {
    const { window, bridge, ipcMain } = openBridge(t, harness.daemon);
    await window.creonow.invoke("app:ping");
    const running = window.creonow.invoke("e2e:sleep", { ms: 600_000 });

    bridge.dispose();
    const orphan = await window.creonow.invoke("app:ping");
    const again = createBridge(ipcMain, harness.daemon, WITH_E2E);
    const served = await window.creonow.invoke("app:ping");
    again.dispose();

    assertFailure(orphan, "DISCONNECTED");
    assert.deepEqual([(await running).ok, served.ok], [false, true]);
  });

  test("hangs up for windows that have gone, and takes their tokens back", PATIENCE, async (t) => {
    const tokens = [];
    const { ipcMain, bridge } = openBridge(t, recordTokens(harness.daemon, tokens));
    const connections = async () => (await harness.call("app:metrics")).connections;
    while ((await connections()) > 1);
    const windows = Array.from({ length: 5 }, () => openWindow(ipcMain, bridge.webPreferences));

    await Promise.all(windows.map((window) => window.creonow.invoke("app:ping")));
    const during = await connections();
    for (const { contents } of windows) contents.emit("destroyed");
    while ((await connections()) > 1);

    assert.equal(during, 6);
    assert.equal(tokens.length, 5);
    for (const token of tokens) {
      assert.deepEqual(await harness.call("session:revoke", { token }), { revoked: false });
    }
  });
});
