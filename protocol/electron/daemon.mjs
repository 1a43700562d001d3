// The daemon as the main process sees it: started, kept alive, called, stopped.
// Knows when to start it again; one run of it is the business of `run`, the wire that of `session`.
import { setTimeout as pause } from "node:timers/promises";
import { DaemonError, disconnected, givenUp } from "./errors.mjs";
import { findExecutable, userDataFolder } from "./executable.mjs";
import { startRun } from "./daemonProcess.mjs";
import { Session } from "./session.mjs";

const GRACE_MS = 6_000;
const RESTART = { attempts: 6, firstDelayMs: 200, longestDelayMs: 10_000, stableMs: 30_000 };
const NO_RESTART = { ...RESTART, attempts: 0 };
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
export class Daemon {
  #settings;
  #policy;
  #session;
  #state = "starting";
  #watchers = new Set();
  #run;
  #info;
  #life;
  #wake = new AbortController();
  #failure;
  #asked = false;
  #end;

  constructor(options) {
    const environment = { ...process.env, ...options.env };
    const executable = findExecutable(options.executable, environment);
    const userData = userDataFolder(options.userData, environment);
    const { onStderr, onFault, ...rest } = { ...DEFAULTS, ...given(options) };
    this.#settings = { ...rest, executable, userData, onFault, onStderr: guarded(onStderr, onFault) };
    this.#policy = options.restart === false ? NO_RESTART : { ...RESTART, ...given(options.restart ?? {}) };
    this.#session = new Session(this.#settings);
  }

  get state() {
    return this.#state;
  }

  get info() {
    return this.#info;
  }

  get pid() {
    return this.#run?.pid;
  }

  get userData() {
    return this.#settings.userData;
  }

  /** For the bridge: everything that was settled at the start. */
  get settings() {
    return this.#settings;
  }

  /** For the bridge: what the main process answers, over whichever connection it is asked. */
  handler(method) {
    return this.#session.listener.handler(method);
  }

  call(channel, payload, options) {
    return this.#session.call(channel, payload, options);
  }

  invoke(channel, payload, options) {
    return this.#session.invoke(channel, payload, options);
  }

  on(event, listener) {
    return this.#session.on(event, listener);
  }

  handle(method, handler) {
    return this.#session.handle(method, handler);
  }

  /** Hear of every change of `state`; returns what ends the listening. */
  onState(watcher) {
    const entry = { watcher };
    this.#watchers.add(entry);
    return () => void this.#watchers.delete(entry);
  }

  /** Resolve when the daemon can be called; reject when it will not be any more. */
  ready() {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.#state === "ready") resolve();
        else if (this.#failure) reject(this.#failure);
        else return false;
        forget();
        return true;
      };
      const forget = this.onState(look);
      look();
    });
  }

  /** Start again: a daemon that was given up, or a running one, which leaves first. */
  async restart() {
    if (this.#end) throw this.#failure;
    if (this.#state === "ready") {
      this.#asked = true;
      this.#session.suspend();
      this.#become("restarting");
      await this.#run.leave(GRACE_MS);
    } else if (this.#life === undefined) {
      this.#failure = undefined;
      this.#session.welcome();
      this.#become("starting");
      this.#life = this.#live();
    }
    await this.ready();
  }

  /** Let it finish, end it, and kill what is left of its tree after `graceMs`. */
  stop({ graceMs = GRACE_MS } = {}) {
    this.#end ??= this.#leave(graceMs);
    return this.#end;
  }

  async #leave(graceMs) {
    this.#fail("stopping", new DaemonError("SHUTTING_DOWN", "The daemon is shutting down."));
    this.#wake.abort();
    await this.#run?.leave(graceMs);
    await this.#life;
    this.#become("stopped");
  }

  async #live() {
    for (let failures = 0; this.#failure === undefined; ) {
      const born = performance.now();
      const error = await this.#once();
      if (this.#failure) break;
      const stable = performance.now() - born > this.#policy.stableMs;
      failures = this.#asked ? 0 : stable ? 1 : failures + 1;
      this.#asked = false;
      if (failures > this.#policy.attempts || !isPassing(error)) {
        this.#life = undefined; // before anyone hears of it: a watcher may want to restart
        this.#fail("failed", error);
        return;
      }
      this.#become("restarting");
      await this.#backOff(failures);
    }
    this.#life = undefined;
  }

  async #once() {
    try {
      this.#run = await startRun(this.#settings, this.#session.listener, this.#wake.signal);
    } catch (error) {
      return error;
    }
    if (this.#failure) {
      await this.#run.leave(GRACE_MS);
      return this.#failure;
    }
    this.#info = this.#run.info;
    this.#session.attach(this.#run.connection);
    this.#become("ready");
    const { code, signal } = await this.#run.exited;
    this.#run = undefined;
    return disconnected("The daemon keeps dying; see its log.", { exitCode: code, signal });
  }

  async #backOff(failures) {
    await pause(delayAfter(failures, this.#policy), undefined, { signal: this.#wake.signal }).catch(() => {});
  }

  #fail(state, error) {
    this.#failure = error;
    this.#session.refuse(givenUp(error));
    this.#become(state);
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    for (const { watcher } of [...this.#watchers]) {
      guarded(watcher, this.#settings.onFault)(state);
    }
  }
}

/** Tell how long to wait after this many deaths in a row: twice as long each time, to a limit. */
export function delayAfter(failures, { firstDelayMs, longestDelayMs } = RESTART) {
  return failures && Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
}

/** Whether starting again can help: not against a wrong option or a daemon of another age. */
function isPassing(error) {
  return error instanceof DaemonError && !["UNSUPPORTED", "NOT_FOUND"].includes(error.code);
}

/** An option that is `undefined` was not given. */
function given(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function guarded(listener, onFault) {
  return (heard) => {
    try {
      listener(heard);
    } catch (error) {
      onFault(error);
    }
  };
}
