// `spawnDaemon` with the stand-in of misbehaving.mjs in the daemon's place.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnDaemon } from "@creonow/electron";

const MISBEHAVING = fileURLToPath(new URL("./misbehaving.mjs", import.meta.url));

/** Restart at once: no test waits for a back-off. */
export const QUICK = { firstDelayMs: 1, longestDelayMs: 5 };

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
