// A daemon that someone else runs, visited through its endpoint. Starts nothing and stops nothing.
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "./connection.mjs";
import { dial } from "./endpoint.mjs";
import { disconnected } from "./errors.mjs";
import { greet } from "./daemonProcess.mjs";
import { Session } from "./session.mjs";

const LOOK_AGAIN_MS = 20;
const VISITOR = { clientInfo: { name: "@creonow/electron/harness" } };

/** Connect as an owner to the daemon of this user-data folder; wait for it if it is not there yet. */
export async function visitDaemon(userData, waitMs) {
  const { socket, pid, token } = await patientDial(userData, AbortSignal.timeout(waitMs));
  const session = new Session({ waitMs, onFault: (error) => console.error(error) });
  const connection = new Connection(socket, socket, session.listener);
  const info = await greet(connection, { ...VISITOR, token });
  session.attach(connection);
  connection.closed.then(() => session.refuse(disconnected()));
  return new Visit(session, connection, { userData, pid, info });
}

/** As much of a `Daemon` as a visitor has. */
class Visit {
  #session;
  #connection;

  constructor(session, connection, facts) {
    this.#session = session;
    this.#connection = connection;
    Object.assign(this, facts);
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

  /** Hear of the end of the visit. */
  onState(watcher) {
    this.#connection.closed.then(() => watcher("stopped"));
    return () => {};
  }

  /** Hang up; the daemon goes on. */
  async stop() {
    this.#connection.close();
  }
}

async function patientDial(userData, signal) {
  for (;;) {
    try {
      return await dial(userData);
    } catch (error) {
      if (signal.aborted) throw error;
      await pause(LOOK_AGAIN_MS);
    }
  }
}
