// The harness of an end-to-end test in JavaScript: an isolated daemon, projects, calls, events, logs.
// The twin of creonowd/testing/harness.py; the same names do the same things.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Connection, dial, initialize } from "./connection.mjs";
import { spawnDaemon } from "./daemon.mjs";
import { DaemonError, disconnected } from "./errors.mjs";
import { Callable, EVERY_EVENT, Session } from "./session.mjs";

const PATIENCE_MS = 10_000;
const POLL_MS = 20;
const CLIENT_INFO = { name: "@creonow/electron/harness" };

/**
 * Start a daemon with user data of its own, in a folder whose name has spaces and Chinese characters.
 *
 * Given node's test context as `test`, it ends with the test; else call `stop`.
 */
export async function startHarness({ test, deterministic = false, keep = false, env = {}, ...options } = {}) {
  const home = await makeHome();
  const userData = options.userData ?? join(home, "user data 用户");
  const environment = {
    CREONOW_WARM_UP: "false",
    ...env,
    CREONOW_E2E: "1",
    CREONOW_USER_DATA_DIR: userData,
    ...(deterministic && { CREONOW_DETERMINISTIC: "1" }),
  };
  const start = () => spawnDaemon({ restart: false, ...options, userData, env: environment });
  return startOrStop(new Harness(home, userData, keep, start), test);
}

/**
 * Join the daemon that an app under test has started on this user-data folder, as its owner.
 *
 * Waits until there is one; `stop` leaves it running.
 */
export async function joinHarness({ userData, test, keep = false, waitMs = PATIENCE_MS }) {
  const attach = () => attachDaemon(userData, waitMs);
  return startOrStop(new Harness(await makeHome(), userData, keep, attach), test);
}

function makeHome() {
  return mkdtemp(join(tmpdir(), "creonow e2e 故事 "));
}

async function startOrStop(harness, test) {
  test?.after(() => harness.stop());
  try {
    await harness.start();
  } catch (error) {
    await harness.stop();
    throw error;
  }
  return harness;
}

class Harness {
  home;
  userData;
  daemon;
  #keep;
  #openDaemon;
  #events = [];
  #waiting = new Set();

  constructor(home, userData, keep, openDaemon) {
    this.home = home;
    this.userData = userData;
    this.#keep = keep;
    this.#openDaemon = openDaemon;
  }

  /** Start the daemon on this harness's user data; call it again after the daemon was stopped or killed. */
  async start() {
    await this.daemon?.stop();
    this.daemon = await this.#openDaemon();
    this.daemon.on(EVERY_EVENT, (fields, name) => this.#add({ name, fields }));
  }

  /** Call a channel as the owner; rejects with a `DaemonError`. */
  call(channel, payload, options) {
    return this.daemon.call(channel, payload, options);
  }

  /** Call a channel as the owner and get the IPC envelope. */
  invoke(channel, payload, options) {
    return this.daemon.invoke(channel, payload, options);
  }

  /** Call a channel that must fail, and resolve with its error. */
  async failure(channel, payload, options) {
    const { answer, error } = await this.call(channel, payload, options).then(
      (answer) => ({ answer }),
      (error) => ({ error }),
    );
    if (error instanceof DaemonError) return error;
    throw error ?? new Error(`${channel} answered ${JSON.stringify(answer)}`);
  }

  /** Answer a call that the daemon makes. */
  handle(method, handler) {
    return this.daemon.handle(method, handler);
  }

  /** Make a folder with these files (path → text) and register it as a project. */
  async makeProject(name = "长夜", files = {}) {
    const rootPath = join(this.home, "projects", name);
    await mkdir(rootPath, { recursive: true });
    for (const [path, text] of Object.entries(files)) {
      const place = join(rootPath, path);
      await mkdir(dirname(place), { recursive: true });
      await writeFile(place, text);
    }
    return this.call("project:create", { rootPath, name });
  }

  /** Set what the AI says from now on, call by call, in runs and as a judge. */
  async script({ verdicts = [], ...script }) {
    const texts = verdicts.map((verdict) => (typeof verdict === "string" ? verdict : JSON.stringify(verdict)));
    await this.call("e2e:ai:script", { ...script, verdicts: texts });
  }

  /** Wait for the next event of this name that matches `where`, and remove it from the queue. */
  async event(name, { where = () => true, timeoutMs = PATIENCE_MS } = {}) {
    const matches = (event) => event.name === name && where(event.fields);
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const index = this.#events.findIndex(matches);
      if (index >= 0) return this.#events.splice(index, 1)[0].fields;
      if (signal.aborted) throw new DaemonError("TIMEOUT", `No event ${name} came in ${timeoutMs} ms.`);
      await this.#nextEvent(signal);
    }
  }

  /** Read the log lines of the daemon, oldest first; only those of `event`, if it is given. */
  async logs(event) {
    const text = await readFile(join(this.userData, "logs", "main.log"), "utf8").catch(() => "");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    const lines = whole.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    return event === undefined ? lines : lines.filter((line) => line.event === event);
  }

  /** Wait until the daemon has logged this event, and return the line. */
  async log(event, { where = () => true, timeoutMs = PATIENCE_MS } = {}) {
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = (await this.logs(event)).find(where);
      if (found !== undefined) return found;
      if (signal.aborted) throw new DaemonError("TIMEOUT", `${event} was not logged in ${timeoutMs} ms.`);
      await pause(POLL_MS);
    }
  }

  /** Kill the daemon as a crash would, and wait until it is gone. */
  async kill() {
    const gone = new Promise((resolve) => {
      const unsubscribe = this.daemon.onState(() => {
        unsubscribe();
        resolve();
      });
    });
    process.kill(this.daemon.pid, "SIGKILL");
    await gone;
  }

  /** Stop the daemon and remove the harness's folder, unless `keep` was set. */
  async stop() {
    await this.daemon?.stop();
    if (!this.#keep) await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  #add(event) {
    this.#events.push(event);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #nextEvent(signal) {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      signal.addEventListener("abort", resolve, { once: true });
    });
  }
}

/** Connect as an owner to the daemon of this user-data folder; wait for it if it is not there yet. */
async function attachDaemon(userData, waitMs) {
  const { socket, pid, token } = await dialUntil(userData, AbortSignal.timeout(waitMs));
  const session = new Session({ waitMs, onFault: (error) => console.error(error) });
  const connection = new Connection(socket, socket, session.listener);
  const info = await initialize(connection, { clientInfo: CLIENT_INFO, token });
  session.use(connection);
  connection.closed.then(() => session.refuse(disconnected()));
  return new AttachedDaemon(session, connection, { userData, pid, info });
}

/** The part of a `Daemon` that does not need its process: another one runs it, and it is never started or stopped here. */
class AttachedDaemon extends Callable {
  #connection;

  constructor(session, connection, { userData, pid, info }) {
    super(session);
    this.#connection = connection;
    this.userData = userData;
    this.pid = pid;
    this.info = info;
  }

  /** Call `watcher` when the connection has ended. */
  onState(watcher) {
    this.#connection.closed.then(() => watcher("stopped"));
    return () => {};
  }

  /** Close the connection; the daemon goes on. */
  async stop() {
    this.#connection.close();
  }
}

async function dialUntil(userData, signal) {
  for (;;) {
    try {
      return await dial(userData);
    } catch (error) {
      if (signal.aborted) throw error;
      await pause(POLL_MS);
    }
  }
}
