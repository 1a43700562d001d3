// A connection that may be lost and come back: calls wait for it, events and subscriptions survive it.
// Knows neither processes nor sockets; whoever has a new connection passes it to `use`.
import { canceled, DaemonError, disconnected, envelope, failure } from "./errors.mjs";
import { encodePayload } from "./payload.mjs";

const LONGEST_QUEUE = 256;
export const RESTARTED = "$/restarted";
export const EVERY_EVENT = "*";

/** Calls that begin and end what a new connection must begin again: watches of files and registered sources. */
const PAIRS = [
  { begin: "context:creonow:watch:start", end: "context:creonow:watch:stop", keys: ["projectId"] },
  {
    begin: "context:source:register",
    end: "context:source:unregister",
    keys: ["name", "layer", "projectId"],
  },
];
const BY_BEGIN = new Map(PAIRS.map((pair) => [pair.begin, pair]));
const BY_END = new Map(PAIRS.map((pair) => [pair.end, pair]));

export class Session {
  #connection;
  #waiting = new Set();
  #refusal;
  #listeners = new Map();
  #handlers = new Map();
  #subscriptions = new Subscriptions();
  #waitMs;
  #onFault;
  #progressTokens = 0;
  #connections = 0;

  constructor({ waitMs, onFault }) {
    this.#waitMs = waitMs;
    this.#onFault = onFault;
  }

  /** What a new connection calls: listeners for events, handlers for the daemon's calls. */
  get listener() {
    return {
      event: (name, fields) => this.emit(name, fields),
      handler: (method) => this.#handlers.get(method),
      fault: (error) => this.#onFault(error),
    };
  }

  /** Call a channel; rejects with a `DaemonError`. */
  async call(channel, payload, { signal, onProgress, timeoutMs } = {}) {
    const meta = timeoutMs === undefined ? {} : { timeoutMs };
    const unsubscribe = onProgress && this.#followProgress(meta, onProgress);
    try {
      const text = encodePayload(payload, meta);
      const connection = await this.#currentConnection(signal);
      const result = await connection.call(channel, text, signal);
      this.#subscriptions.record(channel, text);
      return result;
    } finally {
      unsubscribe?.();
    }
  }

  /** Call a channel and get the envelope; never rejects. */
  invoke(channel, payload, options) {
    return envelope(this.call(channel, payload, options));
  }

  /** Listen to an event of the daemon, over every restart; returns a function that ends it. */
  on(event, listener) {
    if (typeof listener !== "function") throw new TypeError("The listener must be a function.");
    const entries = this.#listeners.get(event) ?? new Set();
    const entry = { listener };
    this.#listeners.set(event, entries.add(entry));
    return () => {
      entries.delete(entry);
    };
  }

  /** Answer a call that the daemon makes, such as `context:source:fetch`; returns a function that ends it. */
  handle(method, handler) {
    if (typeof handler !== "function") throw new TypeError("The handler must be a function.");
    this.#handlers.set(method, handler);
    return () => {
      if (this.#handlers.get(method) === handler) this.#handlers.delete(method);
    };
  }

  /** Call the listeners of an event; one that throws does not stop the others. */
  emit(event, fields) {
    const entries = [...(this.#listeners.get(event) ?? []), ...(this.#listeners.get(EVERY_EVENT) ?? [])];
    for (const { listener } of entries) {
      try {
        listener(fields, event);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }

  /** Use a new connection: restore the subscriptions of the old one, then release the waiting calls. */
  use(connection) {
    this.#connection = connection;
    this.#connections += 1;
    const restored = this.#subscriptions.entries().map((entry) => this.#restore(connection, entry));
    for (const call of [...this.#waiting]) call.proceed(connection);
    connection.closed.then(() => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    if (this.#connections > 1) this.#emitRestarted(restored);
  }

  /** Make calls wait from now on: the connection is about to close. */
  suspend() {
    this.#connection = undefined;
  }

  /** Reject calls from now on, and those that wait for a connection. */
  refuse(error) {
    this.#refusal = error;
    for (const call of [...this.#waiting]) call.reject(error);
  }

  /** Take calls again. */
  accept() {
    this.#refusal = undefined;
  }

  #currentConnection(signal) {
    if (signal?.aborted) return Promise.reject(canceled());
    if (this.#refusal) return Promise.reject(this.#refusal);
    if (this.#connection) return this.#connection;
    if (this.#waiting.size >= LONGEST_QUEUE) {
      const message = "Too many calls wait for the daemon to come back.";
      return Promise.reject(new DaemonError("IPC_BACKPRESSURE", message, { limit: LONGEST_QUEUE }));
    }
    return this.#nextConnection(signal);
  }

  #nextConnection(signal) {
    return new Promise((resolve, reject) => {
      const settleWith = (settle) => (value) => {
        this.#waiting.delete(call);
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      const call = { proceed: settleWith(resolve), reject: settleWith(reject) };
      const abort = () => call.reject(canceled());
      const expire = () => call.reject(disconnected("The daemon did not come back in time; try again."));
      const timer = setTimeout(expire, this.#waitMs);
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(call);
    });
  }

  #followProgress(meta, onProgress) {
    this.#progressTokens += 1;
    meta.progressToken = `bridge-${this.#progressTokens}`;
    return this.on("$/progress", ({ token, value }) => {
      if (token === meta.progressToken) onProgress(value);
    });
  }

  async #restore(connection, { channel, text }) {
    try {
      await connection.call(channel, text);
      return { channel, payload: JSON.parse(text), ok: true };
    } catch (error) {
      if (error.code !== "DISCONNECTED") this.#subscriptions.remove(channel, text);
      return { channel, payload: JSON.parse(text), ...failure(error) };
    }
  }

  async #emitRestarted(restored) {
    this.emit(RESTARTED, { restarts: this.#connections - 1, restored: await Promise.all(restored) });
  }
}

/** The part of a session that the users of a daemon see. */
export class Callable {
  #session;

  constructor(session) {
    this.#session = session;
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
}

/** The subscriptions that a new connection must make again. */
export class Subscriptions {
  #entries = new Map();

  /** Record a call that succeeded: keep what it began, remove what it ended. */
  record(channel, text) {
    if (BY_BEGIN.has(channel)) this.#add(BY_BEGIN.get(channel), text);
    if (BY_END.has(channel)) this.#remove(BY_END.get(channel), JSON.parse(text));
  }

  /** Remove a subscription that could not be made again. */
  remove(channel, text) {
    this.#remove(BY_BEGIN.get(channel), JSON.parse(text));
  }

  /** List the calls to repeat, in the order in which they were first made. */
  entries() {
    return [...this.#entries.values()];
  }

  #add(pair, text) {
    const values = keyValues(pair, JSON.parse(text));
    this.#entries.set(JSON.stringify([pair.begin, ...values]), { channel: pair.begin, text, values });
  }

  /** A key that the payload leaves out matches every value. */
  #remove(pair, payload) {
    const wanted = keyValues(pair, payload);
    for (const [key, { channel, values }] of [...this.#entries]) {
      const matches = wanted.every((value, i) => value === null || value === values[i]);
      if (channel === pair.begin && matches) this.#entries.delete(key);
    }
  }
}

function keyValues(pair, payload) {
  return pair.keys.map((key) => payload[key]?.trim() ?? null);
}
