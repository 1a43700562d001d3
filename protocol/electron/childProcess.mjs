// One process of the daemon: spawn it, initialise it, ask it to leave, kill its whole tree.
import { execFile, spawn } from "node:child_process";
import { delimiter, isAbsolute, join } from "node:path";
import { createInterface } from "node:readline";
import { Connection, initialize } from "./connection.mjs";
import { DaemonError, disconnected } from "./errors.mjs";

const WINDOWS = process.platform === "win32";
const STDERR_LINES = 20;
const PIPES_CLOSE_MS = 500;
const UNREACHABLE_MS = 10_000;

/**
 * Spawn the daemon and resolve with its `DaemonProcess` once it has answered `initialize`.
 *
 * If it does not, its whole tree is gone by the time this rejects; the error says how it ended.
 */
export async function startProcess(settings, listener, signal) {
  const launched = launch(settings);
  const { stdout, stdin } = launched.child;
  const connection = new Connection(stdout, stdin, { ...listener, stray: settings.onStderr });
  let isLate = false;
  const giveUp = () => connection.close();
  const timer = setTimeout(() => {
    isLate = true;
    giveUp();
  }, settings.startTimeoutMs);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const info = await initialize(connection, settings);
    return new DaemonProcess(launched, connection, info);
  } catch (error) {
    killTree(launched.child);
    const exit = await launched.exited;
    throw error.code === "DISCONNECTED" ? startError(exit, launched.stderr, isLate) : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }
}

/** A daemon that has answered; `exited` resolves when it has ended and its pipes are closed. */
class DaemonProcess {
  #child;

  constructor({ child, exited }, connection, info) {
    this.#child = child;
    this.exited = exited;
    this.connection = connection;
    this.info = info;
    connection.closed.then(() => this.#killAfter(UNREACHABLE_MS));
  }

  get pid() {
    return this.#child.pid;
  }

  /** Let it finish and end by itself; kill what is left after `graceMs`. */
  async leave(graceMs) {
    this.#killAfter(graceMs);
    await this.connection.call("shutdown", "{}").catch(() => {});
    this.connection.notify("exit");
    this.#child.stdin.end();
    await this.exited;
  }

  #killAfter(ms) {
    const timer = setTimeout(killTree, ms, this.#child);
    this.exited.then(() => clearTimeout(timer));
  }
}

/**
 * Start the daemon with pipes; `exited` resolves with how it ended, and never rejects.
 *
 * On POSIX it leads a process group of its own, so that nothing it started can outlive it.
 */
function launch({ executable, args, userData, debug, env, cwd, onStderr }) {
  const parameters = [...args, "serve", "--stdio", "--user-data", userData];
  if (debug) parameters.push("--debug");
  const child = spawn(executable, parameters, {
    cwd,
    env: processEnvironment({ ...process.env, ...env }),
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
    detached: !WINDOWS,
  });
  const stderr = [];
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
  createInterface({ input: child.stderr }).on("line", (line) => {
    stderr.push(line);
    if (stderr.length > STDERR_LINES) stderr.shift();
    onStderr(line);
  });
  return { child, stderr, exited: exitOf(child) };
}

/** Return the environment of the daemon: Python finds nothing in the current folder. */
export function processEnvironment({ PYTHONPATH = "", ...environment }) {
  const kept = PYTHONPATH.split(delimiter).filter(isAbsolute);
  const path = kept.length ? { PYTHONPATH: kept.join(delimiter) } : {};
  return { ...environment, ...path, PYTHONSAFEPATH: "1", PYTHONUTF8: "1" };
}

function exitOf(child) {
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ error, code: null, signal: null }));
    child.once("exit", (code, signal) => {
      if (!WINDOWS) killTree(child);
      const timer = setTimeout(closePipes, PIPES_CLOSE_MS, child);
      child.once("close", () => {
        clearTimeout(timer);
        resolve({ code, signal });
      });
    });
  });
}

/** Kill a process and everything it started. */
function killTree(child) {
  if (child.pid === undefined) return;
  if (WINDOWS) {
    const parameters = ["/PID", String(child.pid), "/T", "/F"];
    execFile(join(process.env.SystemRoot ?? "C:\\Windows", "System32", "taskkill.exe"), parameters, { windowsHide: true }, (error) => {
      if (error) child.kill("SIGKILL");
    });
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

function closePipes(child) {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
}

function startError({ error, code, signal }, stderr, isLate) {
  if (error) return new DaemonError("NOT_FOUND", `creonowd could not be started: ${error.message}.`);
  const reason = isLate
    ? "creonowd did not answer in time"
    : `creonowd ended with ${signal ?? `status ${code}`} before it was ready`;
  const message = stderr.length ? `${reason}: ${stderr.join("\n")}` : `${reason}.`;
  return disconnected(message, { exitCode: code, signal });
}
