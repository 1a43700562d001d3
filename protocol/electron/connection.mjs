// JSON-RPC 2.0 over two streams, one JSON text per line: the socket to a running daemon, and the
// `initialize` call that opens the connection.
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { PROTOCOL_VERSION } from "./channels.mjs";
import { canceled, DaemonError, disconnected, fromReply } from "./errors.mjs";
import { stringify } from "./payload.mjs";

const NEWLINE = 10;
const METHOD_NOT_FOUND = -32601;
const HANDLER_FAILED = -32603;
const LONGEST_QUEUE_BYTES = 64 * 1024 * 1024;
const CANCEL = "$/cancelRequest";

/** How a daemon is reached, as its endpoint file names it. */
const TRANSPORTS = {
  unix: ({ address }) => createConnection(address),
  tcp: ({ address }) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(address);
    return createConnection({ host, port: Number(port), noDelay: true });
  },
};

/** Defaults of a listener: for events, for calls of the daemon, for lines that are no message, for errors. */
const NO_LISTENER = { event() {}, handler() {}, stray() {}, fault() {} };

/** Both directions of one connection. `closed` resolves when it has ended and all calls have settled. */
export class Connection {
  limitBytes = 10 * 1024 * 1024;
  #output;
  #listener;
  #calls = new Map();
  #served = new Map();
  #lastId = 0;
  #isClosed = false;
  #resolveClosed;

  constructor(input, output, listener = {}) {
    this.#output = output;
    this.#listener = { ...NO_LISTENER, ...listener };
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    const lines = new LineSplitter((line) => this.#receive(line));
    input.on("data", (chunk) => lines.push(chunk));
    for (const end of ["end", "close", "error"]) input.on(end, () => this.close());
    for (const end of ["close", "error"]) output.on(end, () => this.close());
  }

  /** Call with a payload that is JSON already; an aborted `signal` cancels it in the daemon. */
  call(method, params, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw canceled();
      this.#lastId += 1;
      const id = this.#lastId;
      this.#send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`);
      const cancel = () => this.notify(CANCEL, { id });
      const settle = (outcome) => {
        this.#calls.delete(id);
        signal?.removeEventListener("abort", cancel);
        if (outcome instanceof DaemonError) reject(outcome);
        else resolve(outcome.result);
      };
      this.#calls.set(id, settle);
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Send a notification; does nothing if the daemon has gone. */
  notify(method, params = {}) {
    this.#post({ jsonrpc: "2.0", method, params });
  }

  /** End this side; every pending call settles now. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const settle of [...this.#calls.values()]) settle(disconnected());
    for (const controller of this.#served.values()) controller.abort();
    this.#output.end?.();
    this.#resolveClosed();
  }

  #send(text) {
    if (this.#isClosed) throw disconnected();
    const sizeBytes = Buffer.byteLength(text);
    if (sizeBytes > this.limitBytes) {
      const message = `The message has ${sizeBytes} bytes; ${this.limitBytes} is the limit.`;
      throw new DaemonError("IPC_PAYLOAD_TOO_LARGE", message, { limitBytes: this.limitBytes, sizeBytes });
    }
    if (this.#output.writableLength > LONGEST_QUEUE_BYTES) {
      throw new DaemonError("IPC_BACKPRESSURE", "The daemon does not keep up; wait for replies.", {
        retryAfterMs: 100,
      });
    }
    this.#output.write(`${text}\n`);
  }

  #post(message) {
    if (!this.#isClosed) this.#output.write(`${JSON.stringify(message)}\n`);
  }

  #receive(line) {
    const message = parseMessage(line);
    if (message === undefined) this.#listener.stray(line);
    else if (message.method === undefined) this.#settle(message);
    else if (message.id !== undefined) this.#serve(message);
    else if (message.method === CANCEL) this.#served.get(message.params?.id)?.abort();
    else this.#listener.event(message.method, message.params ?? {});
  }

  #settle(reply) {
    const settle = this.#calls.get(reply.id);
    settle?.(reply.error === undefined ? reply : fromReply(reply.error));
  }

  async #serve({ id, method, params }) {
    const handler = this.#listener.handler(method);
    if (handler === undefined) {
      this.#sendError(id, METHOD_NOT_FOUND, `There is no handler for ${method}.`);
      return;
    }
    const controller = new AbortController();
    this.#served.set(id, controller);
    try {
      const result = stringify(await handler(params ?? {}, { signal: controller.signal }));
      this.#send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
    } catch (error) {
      this.#sendError(id, HANDLER_FAILED, `The handler of ${method} failed.`);
      this.#listener.fault(error);
    } finally {
      this.#served.delete(id);
    }
  }

  #sendError(id, code, message) {
    this.#post({ jsonrpc: "2.0", id, error: { code, message } });
  }
}

/** Introduce this client on a new connection; positions are UTF-16, the message limit is the daemon's. */
export async function initialize(connection, { clientInfo, locale, token, parentPid }) {
  const params = {
    clientInfo,
    protocolVersion: PROTOCOL_VERSION,
    positionEncoding: "utf-16",
    ...(parentPid && { parentPid }),
    ...(locale && { locale }),
    ...(token && { token }),
  };
  const info = await connection.call("initialize", stringify(params));
  if (info.minCompatible > PROTOCOL_VERSION) {
    const message = `The daemon speaks protocol ${info.protocolVersion}; update @creonow/electron.`;
    throw new DaemonError("UNSUPPORTED", message, { minCompatible: info.minCompatible });
  }
  connection.limitBytes = info.limits.maxMessageBytes;
  return info;
}

/** Splits bytes into lines; the parts of a long line are copied only once. */
class LineSplitter {
  #parts = [];
  #emit;

  constructor(emit) {
    this.#emit = emit;
  }

  push(chunk) {
    let start = 0;
    let end = chunk.indexOf(NEWLINE);
    while (end >= 0) {
      const line = Buffer.concat([...this.#parts, chunk.subarray(start, end)]);
      this.#parts = [];
      if (line.length) this.#emit(line.toString("utf8"));
      start = end + 1;
      end = chunk.indexOf(NEWLINE, start);
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
  }
}

function parseMessage(line) {
  try {
    const message = JSON.parse(line);
    return typeof message === "object" && message !== null ? message : undefined;
  } catch {
    return undefined;
  }
}

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
