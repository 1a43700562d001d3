// The connections of pages when the daemon is lost.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { assertFailure, nextEvent, openBridge } from "./bridgeFixtures.mjs";
import { fakeDaemon, stateChange } from "./daemonFixtures.mjs";
import { openWindow } from "./electron.mjs";

const PATIENCE = { timeout: 60_000 };

describe("a crash of the daemon", () => {
  test("under load is one retryable envelope per pending call, and then all goes on", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: { firstDelayMs: 1 } });
    const { ipcMain, bridge, window } = openBridge(t, harness.daemon);
    const windows = [window, openWindow(ipcMain, bridge.webPreferences), openWindow(ipcMain, bridge.webPreferences)];
    const received = windows.map(() => 0);
    windows.forEach((each, i) => {
      each.creonow.on("novel:changed", () => {
        received[i] += 1;
      });
    });
    const restarted = windows.map((each) => nextEvent(each, "$/restarted"));
    const pending = windows.flatMap((each) => Array.from({ length: 40 }, () => each.creonow.invoke("e2e:sleep", { ms: 600_000 })));
    await Promise.all(windows.map((each) => each.creonow.invoke("app:ping")));

    harness.kill();
    const lost = await Promise.all(pending);
    const calls = windows.flatMap((each) => Array.from({ length: 40 }, (_, value) => each.creonow.invoke("e2e:echo", { value })));
    const answers = await Promise.all(calls);
    const events = await Promise.all(restarted);
    await Promise.all(windows.map((each) => each.creonow.invoke("e2e:notify", { method: "novel:changed", count: 3 })));

    assert.deepEqual([...new Set(lost.map(({ ok, error }) => `${ok} ${error?.code}`))], ["false DISCONNECTED"]);
    assert.deepEqual(answers.map(({ data }) => data?.value), calls.map((_, i) => i % 40));
    assert.deepEqual(events.map(({ restarts }) => restarts), [1, 1, 1]);
    assert.deepEqual(received, [3, 3, 3]);
  });

  test("loses no watch that a page had started", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: { firstDelayMs: 1 } });
    const { window } = openBridge(t, harness.daemon);
    const { projectId, rootPath } = await harness.makeProject();
    await window.creonow.invoke("context:creonow:ensure", { projectId });
    await window.creonow.invoke("context:creonow:watch:start", { projectId });
    const restarted = nextEvent(window, "$/restarted");
    const changed = nextEvent(window, "context:creonow:changed");

    harness.kill();
    const { restored } = await restarted;
    writeFileSync(join(rootPath, ".creonow", "rules", "style.md"), "少用形容词。");

    assert.deepEqual(restored, [{ channel: "context:creonow:watch:start", payload: { projectId }, ok: true }]);
    assert.deepEqual((await changed).paths, [".creonow/rules/style.md"]);
  });

  test("that is final is an error for pages, without what the daemon wrote to stderr", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "broken later", { restart: { attempts: 1, firstDelayMs: 1 } });
    const daemon = await started;
    const { window } = openBridge(t, daemon, { allow: ["app:ping", "context:files:export"] });
    const failed = stateChange(daemon, "failed");

    await daemon.invoke("fake:die");
    await failed;
    const down = [await window.creonow.invoke("app:ping"), await window.creonow.invoke("context:files:export", {})];

    for (const envelope of down) assertFailure(envelope, "DISCONNECTED");
    assert.equal(JSON.stringify(down).includes("settings.json"), false);
    await assert.rejects(daemon.ready(), /settings\.json is not a JSON object/);
  });

  test("that is final fails the calls of pages at once, and so does a stop", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND });
    const { window } = openBridge(t, harness.daemon);
    await window.creonow.invoke("app:ping");
    const failed = stateChange(harness.daemon, "failed");

    harness.kill();
    await failed;
    const down = await window.creonow.invoke("app:ping");
    await harness.daemon.restart();
    const back = await window.creonow.invoke("app:ping");
    await harness.daemon.stop();
    const stopped = await window.creonow.invoke("app:ping");

    assertFailure(down, "DISCONNECTED");
    assert.equal(back.ok, true);
    assertFailure(stopped, "SHUTTING_DOWN");
  });
});
