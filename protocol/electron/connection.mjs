// JSON-RPC 2.0 over two streams, one JSON text per line. Knows no channel and no process.
import { canceled, DaemonError, disconnected, fromReply } from "./errors.mjs";
import { stringify } from "./payload.mjs";

const NEWLINE = 10;
const METHOD_NOT_FOUND = -32601;
const HOST_FAILED = -32603;
const LONGEST_QUEUE_BYTES = 64 * 1024 * 1024;
const CANCEL = "$/cancelRequest";

/** What a connection does with what the daemon says by itself; each may be left out. */
const SILENT = { event() {}, handler() {}, stray() {}, fault() {} };

/** Both directions of one connection. `closed` resolves when it has ended and all calls have settled. */
export class Connection {
  limitBytes = 10 * 1024 * 1024;
  #output;
  #listener;
  #calls = new Map();
  #asked = new Map();
  #made = 0;
  #ended = false;
  #end;

  constructor(input, output, listener = {}) {
    this.#output = output;
    this.#listener = { ...SILENT, ...listener };
    this.closed = new Promise((resolve) => (this.#end = resolve));
    const lines = new Lines((line) => this.#receive(line));
    input.on("data", (chunk) => lines.push(chunk));
    for (const end of ["end", "close", "error"]) input.on(end, () => this.close());
    for (const end of ["close", "error"]) output.on(end, () => this.close());
  }

  /** Call with a payload that is JSON already; an aborted `signal` cancels it in the daemon. */
  call(method, params, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw canceled();
      const id = (this.#made += 1);
      this.#send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`);
      const cancel = () => this.notify(CANCEL, { id });
      const settle = (outcome) => {
        this.#calls.delete(id);
        signal?.removeEventListener("abort", cancel);
        outcome instanceof DaemonError ? reject(outcome) : resolve(outcome.result);
      };
      this.#calls.set(id, settle);
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Tell the daemon something that it does not answer; nothing happens if it has gone. */
  notify(method, params = {}) {
    this.#post({ jsonrpc: "2.0", method, params });
  }

  /** End this side; every call that still waits settles now. */
  close() {
    if (this.#ended) return;
    this.#ended = true;
    for (const settle of [...this.#calls.values()]) settle(disconnected());
    for (const controller of this.#asked.values()) controller.abort();
    this.#output.end?.();
    this.#end();
  }

  #send(text) {
    if (this.#ended) throw disconnected();
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
    if (!this.#ended) this.#output.write(`${JSON.stringify(message)}\n`);
  }

  #receive(line) {
    const message = parsed(line);
    if (message === undefined) this.#listener.stray(line);
    else if (message.method === undefined) this.#answered(message);
    else if (message.id !== undefined) this.#answer(message);
    else if (message.method === CANCEL) this.#asked.get(message.params?.id)?.abort();
    else this.#listener.event(message.method, message.params ?? {});
  }

  #answered(reply) {
    const settle = this.#calls.get(reply.id);
    settle?.(reply.error === undefined ? reply : fromReply(reply.error));
  }

  async #answer({ id, method, params }) {
    const handler = this.#listener.handler(method);
    if (handler === undefined) {
      this.#refuse(id, METHOD_NOT_FOUND, `There is no handler for ${method}.`);
      return;
    }
    const controller = new AbortController();
    this.#asked.set(id, controller);
    try {
      const result = stringify(await handler(params ?? {}, { signal: controller.signal }));
      this.#send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
    } catch (error) {
      this.#refuse(id, HOST_FAILED, `The handler of ${method} failed.`);
      this.#listener.fault(error);
    } finally {
      this.#asked.delete(id);
    }
  }

  #refuse(id, code, message) {
    this.#post({ jsonrpc: "2.0", id, error: { code, message } });
  }
}

/** Cuts bytes into lines without copying a long one more than once. */
class Lines {
  #parts = [];
  #emit;

  constructor(emit) {
    this.#emit = emit;
  }

  push(chunk) {
    let start = 0;
    for (let end; (end = chunk.indexOf(NEWLINE, start)) >= 0; start = end + 1) {
      const line = Buffer.concat([...this.#parts, chunk.subarray(start, end)]);
      this.#parts = [];
      if (line.length) this.#emit(line.toString("utf8"));
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
  }
}

function parsed(line) {
  try {
    const message = JSON.parse(line);
    return typeof message === "object" && message !== null ? message : undefined;
  } catch {
    return undefined;
  }
}
