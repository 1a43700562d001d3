// One loaded page of one window: its connection to the daemon, its subscriptions, its running calls.
// The bridge has already checked where the page comes from and what it may call.
import { OWNER_CHANNELS } from "./channels.mjs";
import { DaemonError } from "./errors.mjs";
import { PageConnection } from "./pageConnection.mjs";

const OWNED = new Set(OWNER_CHANNELS);

export class Page {
  #daemon;
  #channels;
  #openConnection;
  #send;
  #subscriptions = new Map();
  #running = new Map();

  constructor(id, daemon, channels, send) {
    this.id = id;
    this.#daemon = daemon;
    this.#channels = channels;
    this.#send = send;
  }

  /** Call a channel; `key` names the call for `cancel`. */
  async call(channel, payload, key) {
    const controller = new AbortController();
    const running = this.#running.get(key) ?? new Set();
    this.#running.set(key, running.add(controller));
    try {
      const target = OWNED.has(channel) ? this.#daemon : this.#connection;
      return await target.call(channel, payload, { signal: controller.signal });
    } finally {
      running.delete(controller);
      if (running.size === 0 && this.#running.get(key) === running) this.#running.delete(key);
    }
  }

  /** Cancel every running call of this key; return how many there were. */
  cancel(key) {
    const running = key === undefined ? [] : [...(this.#running.get(key) ?? [])];
    for (const controller of running) controller.abort();
    return { canceled: running.length };
  }

  subscribe(event) {
    if (!this.#subscriptions.has(event)) {
      this.#subscriptions.set(event, this.#connection.on(event, (fields) => this.#send(event, fields)));
    }
  }

  unsubscribe(event) {
    this.#subscriptions.get(event)?.();
    this.#subscriptions.delete(event);
  }

  close() {
    for (const event of [...this.#subscriptions.keys()]) this.unsubscribe(event);
    for (const running of this.#running.values()) {
      for (const controller of running) controller.abort();
    }
    this.#openConnection?.close(new DaemonError("CANCELED", "The page has gone."));
  }

  /** Opened at the first use, so that a page which calls nothing has none. */
  get #connection() {
    this.#openConnection ??= new PageConnection(this.#daemon, this.#channels);
    return this.#openConnection;
  }
}
