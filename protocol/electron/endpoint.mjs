// The way into a running daemon that its endpoint file names: a Unix socket, or TCP on Windows.
// Knows files and sockets; says nothing over them.
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { disconnected } from "./errors.mjs";

const WAYS = {
  unix: ({ address }) => createConnection(address),
  tcp: ({ address }) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(address);
    return createConnection({ host, port: Number(port), noDelay: true });
  },
};

/**
 * Connect to the daemon of this user-data folder; `token`, where the way needs one, is the owner's.
 *
 * DaemonError DISCONNECTED if it cannot be reached.
 */
export async function dial(userData) {
  try {
    const text = await readFile(join(userData, "run", "endpoint.json"), "utf8");
    const { pid, endpoints } = JSON.parse(text);
    const way = endpoints.find(({ transport }) => transport in WAYS);
    return { socket: await connected(WAYS[way.transport](way)), pid, token: way.token };
  } catch {
    throw disconnected("The daemon's endpoint cannot be reached; try again.");
  }
}

function connected(socket) {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => resolve(socket));
  });
}
