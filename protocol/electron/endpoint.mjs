// A socket to a running daemon, as its endpoint file names it: a Unix socket, or TCP on Windows.
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { disconnected } from "./errors.mjs";

const TRANSPORTS = {
  unix: ({ address }) => createConnection(address),
  tcp: ({ address }) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(address);
    return createConnection({ host, port: Number(port), noDelay: true });
  },
};

/**
 * Connect to the daemon of this user-data folder; `token`, where the transport needs one, is the owner's.
 *
 * DaemonError DISCONNECTED if it cannot be reached.
 */
export async function dial(userData) {
  try {
    const text = await readFile(join(userData, "run", "endpoint.json"), "utf8");
    const { pid, endpoints } = JSON.parse(text);
    const endpoint = endpoints.find(({ transport }) => transport in TRANSPORTS);
    return { socket: await untilConnected(TRANSPORTS[endpoint.transport](endpoint)), pid, token: endpoint.token };
  } catch {
    throw disconnected("The daemon's endpoint cannot be reached; try again.");
  }
}

function untilConnected(socket) {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => resolve(socket));
  });
}
