// Daemons for tests: the real one, and the fake one of fakeDaemon.mjs.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnDaemon } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";

const FAKE_DAEMON = fileURLToPath(new URL("./fakeDaemon.mjs", import.meta.url));

/** A policy that restarts at once, so that no test waits for a pause. */
export const QUICK = { firstDelayMs: 1, longestDelayMs: 5 };

/** Start the real daemon; it ends with the test. */
export async function realDaemon(t, options = {}) {
  const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK, ...options });
  return harness.daemon;
}

/** Start a fake daemon of this behaviour; `started` is what `spawnDaemon` returned, `starts` counts processes. */
export function fakeDaemon(t, behaviour, { env = {}, ...options } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "creonow 坏 "));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const counter = join(folder, "starts");
  writeFileSync(counter, "");
  const started = spawnDaemon({
    executable: process.execPath,
    args: [FAKE_DAEMON],
    userData: folder,
    restart: QUICK,
    ...options,
    env: { BEHAVIOUR: behaviour, STARTS: counter, ...env },
  });
  t.after(() => started.then((daemon) => daemon.stop({ graceMs: 1 }), () => {}));
  return { started, starts: () => readFileSync(counter, "utf8").split("\n").length - 1 };
}

/** Resolve with the error of a call that must fail. */
export function failure(call) {
  return call.then(
    (result) => assert.fail(`answered ${JSON.stringify(result)}`),
    (error) => error,
  );
}

/** Resolve when the daemon enters this state. */
export function stateChange(daemon, wanted) {
  return new Promise((resolve) => {
    const unsubscribe = daemon.onState((state) => {
      if (state !== wanted) return;
      unsubscribe();
      resolve();
    });
  });
}
