// A page's own connection to the daemon, with a renderer's rights and not one more.
// The main process speaks as an owner over stdio; what a page says never travels there.
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "./connection.mjs";
import { dial } from "./endpoint.mjs";
import { givenUp } from "./errors.mjs";
import { greet } from "./daemonProcess.mjs";
import { Session } from "./session.mjs";

const LONGEST_GRANT_MS = 30 * 24 * 3600 * 1000;
const RETRY_MS = 200;

export class Line {
  #daemon;
  #channels;
  #session;
  #connection;
  #token;
  #renewing;
  #over = new AbortController();

  constructor(daemon, channels) {
    this.#daemon = daemon;
    this.#channels = channels;
    this.#session = new Session(daemon.settings);
    this.#keep();
  }

  /** Call with a renderer's rights; a token that has run out is renewed on the way. */
  async call(channel, payload, options) {
    try {
      return await this.#session.call(channel, payload, options);
    } catch (error) {
      if (error.code !== "UNAUTHENTICATED" || !this.#connection) throw error;
    }
    await this.#renew();
    return this.#session.call(channel, payload, options);
  }

  on(event, listener) {
    return this.#session.on(event, listener);
  }

  /** Hang up: what the page asked is cancelled, what it watched is no longer watched. */
  close(error) {
    this.#over.abort();
    this.#session.refuse(error);
    this.#connection?.close();
  }

  async #keep() {
    while (!this.#over.signal.aborted) {
      try {
        await this.#daemon.ready();
      } catch (error) {
        await this.#given(error);
        continue;
      }
      try {
        await this.#serve();
      } catch {
        await pause(RETRY_MS, undefined, { signal: this.#over.signal }).catch(() => {});
      }
    }
  }

  async #serve() {
    const { socket } = await dial(this.#daemon.settings.userData);
    const handler = (method) => this.#daemon.handler(method);
    const connection = new Connection(socket, socket, { ...this.#session.listener, handler });
    try {
      await this.#authorise(connection);
      if (this.#over.signal.aborted) return;
      this.#connection = connection;
      this.#session.attach(connection);
      await connection.closed;
    } finally {
      this.#connection = undefined;
      connection.close();
      socket.destroy();
      if (this.#over.signal.aborted) this.#revoke();
    }
  }

  async #authorise(connection) {
    const known = new Set(this.#daemon.info.channels);
    const channels = this.#channels.filter((channel) => known.has(channel));
    const grant = { role: "renderer", channels, ttlMs: LONGEST_GRANT_MS };
    const { token } = await this.#daemon.call("session:grant", grant);
    this.#token = token;
    await greet(connection, { ...this.#daemon.settings, token, parentPid: undefined });
  }

  #revoke() {
    if (this.#token) this.#daemon.invoke("session:revoke", { token: this.#token });
  }

  #renew() {
    this.#renewing ??= this.#authorise(this.#connection).finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  /** Refuse calls until something happens to the daemon; then let them wait again. */
  async #given(error) {
    if (this.#over.signal.aborted) return;
    this.#session.refuse(givenUp(error));
    await new Promise((resolve) => {
      const forget = this.#daemon.onState(() => resolve(forget()));
      this.#over.signal.addEventListener("abort", () => resolve(forget()), { once: true });
    });
    if (!this.#over.signal.aborted) this.#session.welcome();
  }
}
