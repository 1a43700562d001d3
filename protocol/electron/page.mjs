// One loaded page of one window: its line to the daemon, its subscriptions, its running calls.
// Knows what it may say; who it is was checked before.
import { OWNER_CHANNELS } from "./channels.mjs";
import { DaemonError } from "./errors.mjs";
import { Line } from "./pageConnection.mjs";

const OWNERS = new Set(OWNER_CHANNELS);

export class Page {
  #daemon;
  #channels;
  #opened;
  #send;
  #heard = new Map();
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
      const way = OWNERS.has(channel) ? this.#daemon : this.#line;
      return await way.call(channel, payload, { signal: controller.signal });
    } finally {
      running.delete(controller);
      if (running.size === 0 && this.#running.get(key) === running) this.#running.delete(key);
    }
  }

  /** Cancel every running call of this key; tell how many there were. */
  cancel(key) {
    const running = key === undefined ? [] : [...(this.#running.get(key) ?? [])];
    for (const controller of running) controller.abort();
    return { canceled: running.length };
  }

  subscribe(event) {
    if (!this.#heard.has(event)) {
      this.#heard.set(event, this.#line.on(event, (fields) => this.#send(event, fields)));
    }
  }

  unsubscribe(event) {
    this.#heard.get(event)?.();
    this.#heard.delete(event);
  }

  close() {
    for (const event of [...this.#heard.keys()]) this.unsubscribe(event);
    for (const running of this.#running.values()) {
      for (const controller of running) controller.abort();
    }
    this.#opened?.close(new DaemonError("CANCELED", "The page has gone."));
  }

  get #line() {
    this.#opened ??= new Line(this.#daemon, this.#channels);
    return this.#opened;
  }
}
