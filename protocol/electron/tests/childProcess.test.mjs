// One process of the daemon: started and initialised, or an error that says why not; stopped, or killed.
import assert from "node:assert/strict";
import { ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { DaemonError, spawnDaemon } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";
import { failure, fakeDaemon, QUICK, realDaemon, stateChange } from "./daemonFixtures.mjs";

const PATIENCE = { timeout: 60_000 };
const POLL_MS = 20;

describe("the start of a process", () => {
  test("the daemon is ready, an owner's, and counts in UTF-16", PATIENCE, async (t) => {
    const daemon = await realDaemon(t);

    assert.equal(daemon.state, "ready");
    assert.deepEqual([daemon.info.role, daemon.info.positionEncoding], ["owner", "utf-16"]);
    assert.equal((await daemon.call("app:ping")).pong, true);
  });

  test("it receives our name and process id, and uses UTF-8", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "well", { locale: "zh-CN", debug: true });
    const daemon = await started;

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

  test("a Python finds nothing in the current folder", PATIENCE, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "creonow 坏 "));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ["anyio", "regex", "structlog"]) writeFileSync(join(folder, `${name}.py`), "raise SystemExit(9)\n");
    const python = join(dirname(COMMAND), process.platform === "win32" ? "python.exe" : "python");

    const daemon = await realDaemon(t, { executable: python, args: ["-m", "creonowd"], cwd: folder, env: { PYTHONPATH: delimiter } });

    assert.equal((await daemon.call("app:health")).status, "ok");
  });

  test("it is found on the PATH of `env`, and an option that is undefined has its default", PATIENCE, async (t) => {
    const PATH = `${dirname(COMMAND)}${delimiter}${process.env.PATH}`;
    const nothing = { executable: undefined, waitMs: undefined, onStderr: undefined, startTimeoutMs: undefined };

    const daemon = await realDaemon(t, { ...nothing, env: { PATH, CREONOW_DAEMON: "" }, restart: { attempts: undefined } });

    assert.equal((await daemon.call("app:ping")).pong, true);
  });

  test("it is started without a console window, on three pipes, as the leader of its tree", PATIENCE, async (t) => {
    const seen = [];
    const { spawn } = ChildProcess.prototype;
    ChildProcess.prototype.spawn = function (options) {
      seen.push({ ...options, stdio: [...options.stdio] });
      return spawn.call(this, options);
    };
    t.after(() => {
      ChildProcess.prototype.spawn = spawn;
    });

    await fakeDaemon(t, "well").started;

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
    }
    assert.match(missing.message, /`executable` names .*no such daemon/);
    assert.match(nowhere.message, /pip install creonowd/);
  });

  test("a daemon that cannot start says why, after as many tries as allowed", PATIENCE, async (t) => {
    const received = [];
    const { started, starts } = fakeDaemon(t, "broken", {
      restart: { ...QUICK, attempts: 2 },
      onStderr: (line) => received.push(line),
    });

    const error = await failure(started);

    assert.equal(error.code, "DISCONNECTED");
    assert.match(error.message, /status 3 before it was ready: settings.json is not a JSON object: 墨/);
    assert.equal(error.details.exitCode, 3);
    assert.equal(starts(), 3);
    assert.deepEqual(received, Array(3).fill("settings.json is not a JSON object: 墨"));
  });

  test("a daemon that does not answer is killed and reported", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "mute", { startTimeoutMs: 200, restart: false });

    const error = await failure(started);

    assert.equal(error.code, "DISCONNECTED");
    assert.match(error.message, /did not answer in time/);
  });

  test("an incompatible daemon is refused at once", PATIENCE, async (t) => {
    const { started, starts } = fakeDaemon(t, "from the future");

    const error = await failure(started);

    assert.deepEqual([error.code, error.details.minCompatible, starts()], ["UNSUPPORTED", 99, 1]);
  });

  test("an option that makes no sense is an error and not a loop", PATIENCE, async (t) => {
    const { started } = fakeDaemon(t, "well", { cwd: 7 });
    const nowhere = fakeDaemon(t, "well", { cwd: join(tmpdir(), "no such folder"), restart: { firstDelayMs: 600_000 } });

    assert.equal((await failure(started)) instanceof TypeError, true);
    assert.equal((await failure(nowhere.started)).code, "NOT_FOUND");
  });

  test("a listener of stderr that throws is a fault of its own, and the daemon starts", PATIENCE, async (t) => {
    const faults = [];
    const onStderr = () => assert.fail("mine");
    const { started } = fakeDaemon(t, "broken twice", { onStderr, onFault: ({ message }) => faults.push(message) });

    const daemon = await started;

    assert.equal(daemon.state, "ready");
    assert.deepEqual([...new Set(faults)], ["mine"]);
  });
});

describe("the end of a process", () => {
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
    while (existsSync(join(folder, "run", "endpoint.json")) || !log().includes("daemon_stopped")) await pause(POLL_MS);

    assert.equal(signal, "SIGKILL");
  });

  test("a tree that will not end is killed, children and all", PATIENCE, async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const child = once(server, "connection");
    const { started } = fakeDaemon(t, "stubborn", { env: { PORT: String(server.address().port) } });
    const daemon = await started;
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
    const { started } = fakeDaemon(t, "stubborn", { env: { PORT: String(server.address().port) }, restart: false });
    const daemon = await started;
    const [line] = await child;
    const orphaned = once(line.on("error", () => {}).resume(), "close");
    const failed = stateChange(daemon, "failed");

    await failure(daemon.call("fake:die"));
    await orphaned;

    await failed;
  });
});
