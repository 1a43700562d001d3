// The daemon of the main process: when to start it, start it again and stop it.
// `childProcess` runs one process of it, `session` carries calls over a restart.
import { setTimeout as pause } from "node:timers/promises";
import { startProcess } from "./childProcess.mjs";
import { DaemonError, disconnected, unavailable } from "./errors.mjs";
import { findExecutable, userDataFolder } from "./executable.mjs";
import { Callable, Session } from "./session.mjs";

const GRACE_MS = 6_000;
const RESTART = { attempts: 6, firstDelayMs: 200, longestDelayMs: 10_000, stableMs: 30_000 };
const NO_RESTART = { ...RESTART, attempts: 0 };
const FINAL_CODES = ["UNSUPPORTED", "NOT_FOUND"];
const DEFAULTS = {
  args: [],
  env: {},
  debug: false,
  startTimeoutMs: 30_000,
  waitMs: 15_000,
  clientInfo: { name: "@creonow/electron" },
  parentPid: process.pid,
  onStderr() {},
  onFault: (error) => console.error(error),
};

/** Start the daemon and resolve once it is ready. */
export async function spawnDaemon(options = {}) {
  const daemon = new Daemon(options);
  await daemon.restart();
  return daemon;
}

/** A daemon that is kept alive; made by `spawnDaemon`. */
export class Daemon extends Callable {
  #settings;
  #policy;
  #session;
  #state = "starting";
  #watchers = new Set();
  #process;
  #info;
  #supervision;
  #stopSignal = new AbortController();
  #failure;
  #restartRequested = false;
  #stopped;

  constructor(options) {
    const settings = resolveSettings(options);
    const session = new Session(settings);
    super(session);
    this.#settings = settings;
    this.#session = session;
    this.#policy = options.restart === false ? NO_RESTART : { ...RESTART, ...withoutUndefined(options.restart ?? {}) };
  }

  get state() {
    return this.#state;
  }

  get info() {
    return this.#info;
  }

  get pid() {
    return this.#process?.pid;
  }

  get userData() {
    return this.#settings.userData;
  }

  /** The program that runs and where it was found. */
  get executable() {
    return this.#settings.found;
  }

  /** For the bridge: the options with every default filled in. */
  get settings() {
    return this.#settings;
  }

  /** For the bridge: return the main process's handler of a method, whichever connection asks. */
  handler(method) {
    return this.#session.listener.handler(method);
  }

  /** Call `watcher` on every change of `state`; returns a function that ends it. */
  onState(watcher) {
    const entry = { watcher };
    this.#watchers.add(entry);
    return () => {
      this.#watchers.delete(entry);
    };
  }

  /** Resolve when the daemon can be called; reject when it will not start any more. */
  ready() {
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (this.#state === "ready") resolve();
        else if (this.#failure) reject(this.#failure);
        else return;
        unsubscribe();
      };
      const unsubscribe = this.onState(settle);
      settle();
    });
  }

  /** Start a daemon that has failed, or replace a running one after it has left. */
  async restart() {
    if (this.#stopped) throw this.#failure;
    if (this.#state === "ready") {
      this.#restartRequested = true;
      this.#session.suspend();
      this.#setState("restarting");
      await this.#process.leave(GRACE_MS);
    } else if (this.#supervision === undefined) {
      this.#failure = undefined;
      this.#session.accept();
      this.#setState("starting");
      this.#supervision = this.#supervise();
    }
    await this.ready();
  }

  /** Let it finish, end it, and kill what is left of its process tree after `graceMs`. */
  stop({ graceMs = GRACE_MS } = {}) {
    this.#stopped ??= this.#stop(graceMs);
    return this.#stopped;
  }

  async #stop(graceMs) {
    this.#fail("stopping", new DaemonError("SHUTTING_DOWN", "The daemon is shutting down."));
    this.#stopSignal.abort();
    await this.#process?.leave(graceMs);
    await this.#supervision;
    this.#setState("stopped");
  }

  /** Run one process after another until one fails for good or the daemon is stopped. */
  async #supervise() {
    let failures = 0;
    while (this.#failure === undefined) {
      const startedAt = performance.now();
      const error = await this.#runProcess();
      if (this.#failure) break;
      const wasStable = performance.now() - startedAt > this.#policy.stableMs;
      if (this.#restartRequested) failures = 0;
      else if (wasStable) failures = 1;
      else failures += 1;
      this.#restartRequested = false;
      if (failures > this.#policy.attempts || !isRecoverable(error)) {
        this.#supervision = undefined; // before watchers are called: one of them may call `restart`
        this.#fail("failed", error);
        return;
      }
      this.#setState("restarting");
      const options = { signal: this.#stopSignal.signal };
      await pause(delayAfter(failures, this.#policy), undefined, options).catch(() => {});
    }
    this.#supervision = undefined;
  }

  /** Run one process until it ends; resolve with why. */
  async #runProcess() {
    try {
      this.#process = await startProcess(this.#settings, this.#session.listener, this.#stopSignal.signal);
    } catch (error) {
      return error;
    }
    if (this.#failure) {
      await this.#process.leave(GRACE_MS);
      return this.#failure;
    }
    this.#info = this.#process.info;
    this.#session.use(this.#process.connection);
    this.#setState("ready");
    const { code, signal } = await this.#process.exited;
    this.#process = undefined;
    return disconnected("The daemon keeps dying; see its log.", { exitCode: code, signal });
  }

  #fail(state, error) {
    this.#failure = error;
    this.#session.refuse(unavailable(error));
    this.#setState(state);
  }

  #setState(state) {
    if (state === this.#state) return;
    this.#state = state;
    for (const { watcher } of [...this.#watchers]) {
      reportingErrors(watcher, this.#settings.onFault)(state);
    }
  }
}

/** Return how long to wait after this many failures in a row: twice as long each time, to a limit. */
export function delayAfter(failures, { firstDelayMs, longestDelayMs } = RESTART) {
  if (failures === 0) return 0;
  return Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
}

function resolveSettings(options) {
  const environment = { ...process.env, ...options.env };
  const settings = { ...DEFAULTS, ...withoutUndefined(options) };
  const found = findExecutable(options.executable, environment);
  return {
    ...settings,
    found,
    executable: found.path,
    userData: userDataFolder(options.userData, environment),
    onStderr: reportingErrors(settings.onStderr, settings.onFault),
  };
}

/** Whether a new start can help: not against a wrong option or an incompatible daemon. */
function isRecoverable(error) {
  return error instanceof DaemonError && !FINAL_CODES.includes(error.code);
}

/** Leave out the options that are `undefined`. */
function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Wrap a listener so that what it throws goes to `onFault`. */
function reportingErrors(listener, onFault) {
  return (value) => {
    try {
      listener(value);
    } catch (error) {
      onFault(error);
    }
  };
}
