// Launch the app under test in the Electron that `scripts/electron` prepared, and watch what it leaves behind.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { _electron } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const PATIENCE_MS = 60_000;
const IS_ROOT = process.getuid?.() === 0;

/** Start a display; resolves with a function that ends it. */
export async function startDisplay() {
  if (process.platform !== "linux") return () => {};
  const display = spawn("Xvfb", ["-displayfd", "3", "-noreset", "-screen", "0", "1024x768x24", "-nolisten", "tcp"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const number = await new Promise((resolve, reject) => {
    display.once("exit", (code) => reject(new Error(`Xvfb ended with status ${code}`)));
    display.stdio[3].once("data", (data) => resolve(data.toString().trim()));
  });
  process.env.DISPLAY = `:${number}`;
  return () => display.kill();
}

/** Launch the app; resolves with the app, its first page, and the pid of its daemon. */
export async function launch({ executable = process.env.CREONOW_ELECTRON, args = [HERE], env = {} } = {}) {
  const home = mkdtempSync(join(tmpdir(), "creonow 应用 "));
  const userData = join(home, "app data", "creonow");
  const app = await _electron.launch({
    executablePath: executable,
    args,
    env: { ...process.env, HOME: home, CREONOW_USER_DATA_DIR: userData, ...env },
    chromiumSandbox: !IS_ROOT,
    timeout: PATIENCE_MS,
  });
  const page = await app.firstWindow();
  await page.waitForFunction(() => globalThis.creonow !== undefined, undefined, { timeout: PATIENCE_MS });
  const pong = await page.evaluate(() => window.creonow.invoke("app:ping"));
  return { app, page, home, userData, daemonPid: pong.data.pid };
}

/** Resolve when a process is gone; reject if it is still there after the patience of the tests. */
export async function untilGone(pid) {
  const end = Date.now() + PATIENCE_MS;
  while (isAlive(pid)) {
    if (Date.now() > end) throw new Error(`process ${pid} is still there`);
    await pause(20);
  }
}

/** Return what a process runs; nothing where that cannot be asked. */
export async function programOf(pid) {
  return existsSync(`/proc/${pid}/exe`) ? readlink(`/proc/${pid}/exe`) : undefined;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
