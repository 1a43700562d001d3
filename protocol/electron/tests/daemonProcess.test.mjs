// `spawnDaemon` until it resolves: found, told, ready; or an error that says why not.
import assert from "node:assert/strict";
import { ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { DaemonError, spawnDaemon } from "@creonow/electron";
import { COMMAND } from "../../tests/daemon.mjs";
import { delayAfter } from "../daemon.mjs";
import { failure, misbehaving, QUICK, real } from "./daemonFixtures.mjs";

const PATIENCE = { timeout: 60_000 };

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
