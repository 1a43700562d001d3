// A page's own connection to the daemon, with the rights of a renderer and no others.
// The main process calls as an owner over stdio; a page's calls never use that connection.
import { setTimeout as pause } from "node:timers/promises";
import { Connection, dial, initialize } from "./connection.mjs";
import { unavailable } from "./errors.mjs";
import { Session } from "./session.mjs";

const LONGEST_GRANT_MS = 30 * 24 * 3600 * 1000;
const RETRY_MS = 200;

export class PageConnection {
  #daemon;
  #channels;
  #session;
  #connection;
  #token;
  #renewal;
  #closing = new AbortController();

  constructor(daemon, channels) {
    this.#daemon = daemon;
    this.#channels = channels;
    this.#session = new Session(daemon.settings);
    this.#stayConnected();
  }

  /** Call with a renderer's rights; if the token has expired, get a new one and call again. */
  async call(channel, payload, options) {
    try {
      return await this.#session.call(channel, payload, options);
    } catch (error) {
      if (error.code !== "UNAUTHENTICATED" || !this.#connection) throw error;
    }
    await this.#renewToken();
    return this.#session.call(channel, payload, options);
  }

  on(event, listener) {
    return this.#session.on(event, listener);
  }

  /** Close for good: the daemon cancels the page's calls and ends its watches. */
  close(error) {
    this.#closing.abort();
    this.#session.refuse(error);
    this.#connection?.close();
  }

  get #isClosed() {
    return this.#closing.signal.aborted;
  }

  async #stayConnected() {
    while (!this.#isClosed) {
      try {
        await this.#daemon.ready();
      } catch (error) {
        await this.#refuseUntilStateChanges(error);
        continue;
      }
      try {
        await this.#connectOnce();
      } catch {
        await pause(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => {});
      }
    }
  }

  /** Connect, and resolve when the connection has ended. */
  async #connectOnce() {
    const { socket } = await dial(this.#daemon.settings.userData);
    const handler = (method) => this.#daemon.handler(method);
    const connection = new Connection(socket, socket, { ...this.#session.listener, handler });
    try {
      await this.#authorise(connection);
      if (this.#isClosed) return;
      this.#connection = connection;
      this.#session.use(connection);
      await connection.closed;
    } finally {
      this.#connection = undefined;
      connection.close();
      socket.destroy();
      if (this.#isClosed) this.#revokeToken();
    }
  }

  async #authorise(connection) {
    const known = new Set(this.#daemon.info.channels);
    const channels = this.#channels.filter((channel) => known.has(channel));
    const grant = { role: "renderer", channels, ttlMs: LONGEST_GRANT_MS };
    const { token } = await this.#daemon.call("session:grant", grant);
    this.#token = token;
    await initialize(connection, { ...this.#daemon.settings, token, parentPid: undefined });
  }

  #revokeToken() {
    if (this.#token) this.#daemon.invoke("session:revoke", { token: this.#token });
  }

  /** Get a new token; calls that find theirs expired at the same time share one renewal. */
  #renewToken() {
    this.#renewal ??= this.#authorise(this.#connection).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #refuseUntilStateChanges(error) {
    if (this.#isClosed) return;
    this.#session.refuse(unavailable(error));
    await new Promise((resolve) => {
      const unsubscribe = this.#daemon.onState(done);
      this.#closing.signal.addEventListener("abort", done, { once: true });
      function done() {
        unsubscribe();
        resolve();
      }
    });
    if (!this.#isClosed) this.#session.accept();
  }
}
