// `spawnDaemon` for tests: the real daemon, or the stand-in of fakeDaemon.mjs in its place.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnDaemon } from "@creonow/electron";
import { startHarness } from "@creonow/electron/harness";
import { COMMAND } from "../../tests/daemon.mjs";

const MISBEHAVING = fileURLToPath(new URL("./fakeDaemon.mjs", import.meta.url));

/** Restart at once: no test waits for a back-off. */
export const QUICK = { firstDelayMs: 1, longestDelayMs: 5 };

/** The real daemon, gone with the test. */
export async function real(t, options = {}) {
  const harness = await startHarness({ test: t, executable: COMMAND, restart: QUICK, ...options });
  return harness.daemon;
}

/** A daemon of this mood; `options` may ask for more. */
export function misbehaving(t, mood, { env = {}, ...options } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "creonow 坏 "));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const diary = join(folder, "diary");
  writeFileSync(diary, "");
  const starting = spawnDaemon({
    executable: process.execPath,
    args: [MISBEHAVING],
    userData: folder,
    restart: QUICK,
    ...options,
    env: { MOOD: mood, DIARY: diary, ...env },
  });
  t.after(() => starting.then((daemon) => daemon.stop({ graceMs: 1 }), () => {}));
  return { starting, starts: () => readFileSync(diary, "utf8").split("\n").length - 1 };
}

/** Resolve with the error that a call must end in. */
export function failure(call) {
  return call.then(
    (result) => assert.fail(`answered ${JSON.stringify(result)}`),
    (error) => error,
  );
}

/** Resolve when the daemon is in this state. */
export function becomes(daemon, wanted) {
  return new Promise((resolve) => {
    const forget = daemon.onState((state) => state === wanted && resolve(forget()));
  });
}
