// A daemon that another process runs, reached through its endpoint; never started or stopped here.
import { setTimeout as pause } from "node:timers/promises";
import { Connection, initialize } from "./connection.mjs";
import { dial } from "./endpoint.mjs";
import { disconnected } from "./errors.mjs";
import { Callable, Session } from "./session.mjs";

const POLL_MS = 20;
const CLIENT_INFO = { name: "@creonow/electron/harness" };

/** Connect as an owner to the daemon of this user-data folder; wait for it if it is not there yet. */
export async function attachDaemon(userData, waitMs) {
  const { socket, pid, token } = await dialUntil(userData, AbortSignal.timeout(waitMs));
  const session = new Session({ waitMs, onFault: (error) => console.error(error) });
  const connection = new Connection(socket, socket, session.listener);
  const info = await initialize(connection, { clientInfo: CLIENT_INFO, token });
  session.use(connection);
  connection.closed.then(() => session.refuse(disconnected()));
  return new AttachedDaemon(session, connection, { userData, pid, info });
}

/** The part of a `Daemon` that does not need its process. */
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
