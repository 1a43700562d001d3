// The end of a daemon: asked for, forced, or that of the app itself.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { becomes, failure, misbehaving, real } from "./daemonFixtures.mjs";

const PATIENCE = { timeout: 60_000 };
const LOOK_AGAIN_MS = 20;

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
