// One run of the daemon as a child process, and the end of its whole tree. Knows no protocol.
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";

const WINDOWS = process.platform === "win32";
const KEPT_LINES = 20;
const PIPES_CLOSE_MS = 500;

/**
 * Start a program with pipes; `exited` resolves with how it ended, and never rejects.
 *
 * On POSIX it leads a process group of its own, so that nothing it started can outlive it.
 */
export function launch(executable, parameters, { env, cwd, onStderr }) {
  const child = spawn(executable, parameters, {
    cwd,
    env: { ...process.env, ...env, PYTHONUTF8: "1" },
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
    detached: !WINDOWS,
  });
  const complaints = [];
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
  createInterface({ input: child.stderr }).on("line", (line) => {
    complaints.push(line);
    if (complaints.length > KEPT_LINES) complaints.shift();
    onStderr(line);
  });
  return { child, complaints, exited: ending(child) };
}

/** Kill a process and everything it started. */
export function killTree(child) {
  if (child.pid === undefined) return;
  if (WINDOWS) {
    const all = ["/PID", String(child.pid), "/T", "/F"];
    execFile("taskkill", all, { windowsHide: true }, (error) => error && child.kill("SIGKILL"));
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

function ending(child) {
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ error, code: null, signal: null }));
    child.once("exit", (code, signal) => {
      const end = { code, signal };
      if (!WINDOWS) killTree(child);
      const timer = setTimeout(closePipes, PIPES_CLOSE_MS, child);
      child.once("close", () => {
        clearTimeout(timer);
        resolve(end);
      });
    });
  });
}

function closePipes(child) {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
}
