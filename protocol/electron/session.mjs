// A connection that may be lost and come back: calls wait for it, events and sources survive it.
// Knows neither processes nor sockets; whoever has a new connection attaches it.
import { canceled, DaemonError, disconnected, envelope, failure } from "./errors.mjs";
import { Journal } from "./resubscribe.mjs";
import { encodePayload } from "./payload.mjs";

const LONGEST_QUEUE = 256;
export const RESTARTED = "$/restarted";
export const EVERY_EVENT = "*";

export class Session {
  #connection;
  #waiting = new Set();
  #refusal;
  #listeners = new Map();
  #handlers = new Map();
  #journal = new Journal();
  #waitMs;
  #fault;
  #tokens = 0;
  #attached = 0;

  constructor({ waitMs, onFault }) {
    this.#waitMs = waitMs;
    this.#fault = onFault;
  }

  /** What a new connection tells us: events for the listeners, calls for the handlers. */
  get listener() {
    return {
      event: (name, fields) => this.emit(name, fields),
      handler: (method) => this.#handlers.get(method),
      fault: (error) => this.#fault(error),
    };
  }

  /** Call a channel; rejects with a `DaemonError`. */
  async call(channel, payload, { signal, onProgress, timeoutMs } = {}) {
    const meta = timeoutMs === undefined ? {} : { timeoutMs };
    const forget = onProgress && this.#follow(meta, onProgress);
    try {
      const text = encodePayload(payload, meta);
      const connection = await this.#connected(signal);
      const result = await connection.call(channel, text, signal);
      this.#journal.note(channel, text);
      return result;
    } finally {
      forget?.();
    }
  }

  /** Call a channel and get the envelope; never rejects. */
  invoke(channel, payload, options) {
    return envelope(this.call(channel, payload, options));
  }

  /** Listen to an event of the daemon, over every restart; returns what ends the listening. */
  on(event, listener) {
    if (typeof listener !== "function") throw new TypeError("The listener must be a function.");
    const held = this.#listeners.get(event) ?? new Set();
    const entry = { listener };
    this.#listeners.set(event, held.add(entry));
    return () => void held.delete(entry);
  }

  /** Answer a call that the daemon makes, such as `context:source:fetch`. */
  handle(method, handler) {
    if (typeof handler !== "function") throw new TypeError("The handler must be a function.");
    this.#handlers.set(method, handler);
    return () => void (this.#handlers.get(method) === handler && this.#handlers.delete(method));
  }

  /** Tell the listeners; one that throws does not keep the others from hearing. */
  emit(event, fields) {
    const heard = [...(this.#listeners.get(event) ?? []), ...(this.#listeners.get(EVERY_EVENT) ?? [])];
    for (const { listener } of heard) {
      try {
        listener(fields, event);
      } catch (error) {
        this.#fault(error);
      }
    }
  }

  /** Take up work on a new connection: restore what the old one had, then let the waiting calls go. */
  attach(connection) {
    this.#connection = connection;
    this.#attached += 1;
    const restoring = this.#journal.entries().map((entry) => this.#restore(connection, entry));
    for (const waiting of [...this.#waiting]) waiting.go(connection);
    connection.closed.then(() => this.#detach(connection));
    if (this.#attached > 1) this.#announce(restoring);
  }

  /** Let calls wait from now on: the connection is about to be given up. */
  suspend() {
    this.#connection = undefined;
  }

  /** Take no more calls; those that wait for a connection settle now. */
  refuse(error) {
    this.#refusal = error;
    for (const waiting of [...this.#waiting]) waiting.give(error);
  }

  /** Take calls again. */
  welcome() {
    this.#refusal = undefined;
  }

  #detach(connection) {
    if (this.#connection === connection) this.#connection = undefined;
  }

  #connected(signal) {
    if (signal?.aborted) return Promise.reject(canceled());
    if (this.#refusal) return Promise.reject(this.#refusal);
    if (this.#connection) return this.#connection;
    if (this.#waiting.size >= LONGEST_QUEUE) {
      const message = "Too many calls wait for the daemon to come back.";
      return Promise.reject(new DaemonError("IPC_BACKPRESSURE", message, { limit: LONGEST_QUEUE }));
    }
    return this.#wait(signal);
  }

  #wait(signal) {
    return new Promise((resolve, reject) => {
      const done = (settle) => (value) => {
        this.#waiting.delete(waiting);
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      const waiting = { go: done(resolve), give: done(reject) };
      const abort = () => waiting.give(canceled());
      const late = () => waiting.give(disconnected("The daemon did not come back in time; try again."));
      const timer = setTimeout(late, this.#waitMs);
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  #follow(meta, onProgress) {
    meta.progressToken = `bridge-${(this.#tokens += 1)}`;
    return this.on("$/progress", ({ token, value }) => token === meta.progressToken && onProgress(value));
  }

  async #restore(connection, { channel, text }) {
    try {
      await connection.call(channel, text);
      return { channel, payload: JSON.parse(text), ok: true };
    } catch (error) {
      if (error.code !== "DISCONNECTED") this.#journal.forget(channel, text);
      return { channel, payload: JSON.parse(text), ...failure(error) };
    }
  }

  async #announce(restoring) {
    this.emit(RESTARTED, { restarts: this.#attached - 1, restored: await Promise.all(restoring) });
  }
}
