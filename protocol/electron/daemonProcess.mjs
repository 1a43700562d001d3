// One run of the daemon: spawned, greeted, and at last asked to leave. Knows nothing of the next run.
import { PROTOCOL_VERSION } from "./channels.mjs";
import { Connection } from "./connection.mjs";
import { DaemonError, disconnected } from "./errors.mjs";
import { stringify } from "./payload.mjs";
import { killTree, launch } from "./process.mjs";

const DEAF_MS = 10_000;

/**
 * Spawn the daemon and resolve once it has answered `initialize`.
 *
 * If it does not, its whole tree is gone by the time this rejects; the error says how it ended.
 */
export async function startRun(settings, listener, signal) {
  const started = launch(settings.executable, parameters(settings), settings);
  const { stdout, stdin } = started.child;
  const connection = new Connection(stdout, stdin, { ...listener, stray: settings.onStderr });
  let late = false;
  const giveUp = () => connection.close();
  const timer = setTimeout(() => giveUp((late = true)), settings.startTimeoutMs);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const info = await greet(connection, settings);
    return new Run(started, connection, info);
  } catch (error) {
    killTree(started.child);
    const end = await started.exited;
    throw error.code === "DISCONNECTED" ? explained(end, started.complaints, late) : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }
}

/** A daemon that has answered; `exited` resolves when it has ended and its pipes are closed. */
class Run {
  #child;

  constructor({ child, exited }, connection, info) {
    this.#child = child;
    this.exited = exited;
    this.connection = connection;
    this.info = info;
    connection.closed.then(() => this.#killAfter(DEAF_MS));
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

/** Introduce ourselves on a new connection: UTF-16 positions, and the limits that the daemon names. */
export async function greet(connection, { clientInfo, locale, token, parentPid }) {
  const hello = {
    clientInfo,
    protocolVersion: PROTOCOL_VERSION,
    positionEncoding: "utf-16",
    ...(parentPid && { parentPid }),
    ...(locale && { locale }),
    ...(token && { token }),
  };
  const info = await connection.call("initialize", stringify(hello));
  if (info.minCompatible > PROTOCOL_VERSION) {
    const message = `The daemon speaks protocol ${info.protocolVersion}; update @creonow/electron.`;
    throw new DaemonError("UNSUPPORTED", message, { minCompatible: info.minCompatible });
  }
  connection.limitBytes = info.limits.maxMessageBytes;
  return info;
}

function parameters({ args, userData, debug }) {
  return [...args, "serve", "--stdio", "--user-data", userData, ...(debug ? ["--debug"] : [])];
}

function explained({ error, code, signal }, complaints, late) {
  if (error) return new DaemonError("NOT_FOUND", `creonowd could not be started: ${error.message}.`);
  const how = late
    ? "creonowd did not answer in time"
    : `creonowd ended with ${signal ?? `status ${code}`} before it was ready`;
  const said = complaints.length ? `${how}: ${complaints.join("\n")}` : `${how}.`;
  return disconnected(said, { exitCode: code, signal });
}
