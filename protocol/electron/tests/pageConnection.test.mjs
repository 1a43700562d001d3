// What pages see of a daemon that is lost.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { openWindow } from "./electron.mjs";
import { misbehaving } from "./daemonFixtures.mjs";
import { assertFailure, bridged, next } from "./bridgeFixtures.mjs";

const PATIENCE = { timeout: 60_000 };

describe("a crash of the daemon", () => {
  test("under load is one retryable envelope per pending call, and then all goes on", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: { firstDelayMs: 1 } });
    const { ipcMain, bridge, window } = bridged(t, harness.daemon);
    const windows = [window, openWindow(ipcMain, bridge.webPreferences), openWindow(ipcMain, bridge.webPreferences)];
    const heard = windows.map(() => 0);
    windows.forEach((each, i) => each.creonow.on("novel:changed", () => (heard[i] += 1)));
    const restarted = windows.map((each) => next(each, "$/restarted"));
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
    assert.deepEqual(heard, [3, 3, 3]);
  });

  test("loses no watch that a page had started", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND, restart: { firstDelayMs: 1 } });
    const { window } = bridged(t, harness.daemon);
    const { projectId, rootPath } = await harness.makeProject();
    await window.creonow.invoke("context:creonow:ensure", { projectId });
    await window.creonow.invoke("context:creonow:watch:start", { projectId });
    const restarted = next(window, "$/restarted");
    const changed = next(window, "context:creonow:changed");

    harness.kill();
    const { restored } = await restarted;
    writeFileSync(join(rootPath, ".creonow", "rules", "style.md"), "少用形容词。");

    assert.deepEqual(restored, [{ channel: "context:creonow:watch:start", payload: { projectId }, ok: true }]);
    assert.deepEqual((await changed).paths, [".creonow/rules/style.md"]);
  });

  test("that it cannot recover from is told to pages without what it said on its way out", PATIENCE, async (t) => {
    const { starting } = misbehaving(t, "broken later", { restart: { attempts: 1, firstDelayMs: 1 } });
    const daemon = await starting;
    const { window } = bridged(t, daemon, { allow: ["app:ping", "context:files:export"] });
    const given = new Promise((resolve) => daemon.onState((state) => state === "failed" && resolve()));

    await daemon.invoke("fake:die");
    await given;
    const down = [await window.creonow.invoke("app:ping"), await window.creonow.invoke("context:files:export", {})];

    for (const envelope of down) assertFailure(envelope, "DISCONNECTED");
    assert.equal(JSON.stringify(down).includes("settings.json"), false);
    await assert.rejects(daemon.ready(), /settings\.json is not a JSON object/);
  });

  test("that is final, and a stop, are told to pages at once", PATIENCE, async (t) => {
    const harness = await startHarness({ test: t, executable: COMMAND });
    const { window } = bridged(t, harness.daemon);
    await window.creonow.invoke("app:ping");
    const given = new Promise((resolve) => harness.daemon.onState((state) => state === "failed" && resolve()));

    harness.kill();
    await given;
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
