// JSON lines over two streams: cut anywhere, out of order, too many at once.
import assert from "node:assert/strict";
import { PassThrough, Writable } from "node:stream";
import { test } from "node:test";
import { Connection } from "../connection.mjs";

const PATIENCE = { timeout: 30_000 };

/** A connection whose other end we play ourselves; `sent` is what it has written. */
function connect(listener) {
  const sent = [];
  const input = new PassThrough();
  const output = new Writable({ write: (line, _encoding, done) => done(void sent.push(JSON.parse(line))) });
  return { connection: new Connection(input, output, listener), input, output, sent };
}

test("lines may be cut inside a character, joined, blank or foreign", PATIENCE, async () => {
  const received = [];
  const { connection, input } = connect({ event: (_name, fields) => received.push(fields), stray: (line) => received.push(line) });
  const event = (fields) => `${JSON.stringify({ jsonrpc: "2.0", method: "e", params: fields })}\n`;
  const stream = Buffer.from(`${event({ text: "墨🖋️" })}\r\n\nno message\n7\n${event({ n: 1 })}${event({ n: 2 })}`);

  for (const byte of stream) input.write(Buffer.of(byte));
  input.end(Buffer.concat([stream, stream]));
  await connection.closed;

  const once = [{ text: "墨🖋️" }, "\r", "no message", "7", { n: 1 }, { n: 2 }];
  assert.deepEqual(received, [...once, ...once, ...once]);
});

test("answers find their calls in any order, and strangers find none", PATIENCE, async () => {
  const { connection, input, sent } = connect();
  const calls = ["a", "b"].map((name) => connection.call(name, "{}"));
  const reply = (id, result) => input.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);

  reply(99, "stranger");
  reply(null, "nobody");
  reply(sent[1].id, "for b");
  reply(sent[0].id, "for a");
  reply(sent[0].id, "twice");

  assert.deepEqual(await Promise.all(calls), ["for a", "for b"]);
});

test("an error without data is INTERNAL, and keeps what it says", PATIENCE, async () => {
  const { connection, input, sent } = connect();
  const call = connection.call("a", "{}");

  input.write(`${JSON.stringify({ jsonrpc: "2.0", id: sent[0].id, error: { code: 1, message: "odd" } })}\n`);

  await assert.rejects(call, { name: "DaemonError", code: "INTERNAL", message: "odd", retryable: false });
});

test("the end of either stream settles every call, once", PATIENCE, async () => {
  const endings = [
    ({ input }) => input.end(),
    ({ input }) => input.destroy(new Error("read")),
    ({ output }) => output.destroy(new Error("write")),
    ({ connection }) => connection.close(),
  ];

  for (const end of endings) {
    const made = connect();
    const calls = [1, 2, 3].map(() => made.connection.call("a", "{}").catch(({ code }) => code));
    end(made);
    end(made);

    assert.deepEqual(await Promise.all(calls), Array(3).fill("DISCONNECTED"));
    await made.connection.closed;
    await assert.rejects(made.connection.call("a", "{}"), { code: "DISCONNECTED" });
    made.connection.notify("nobody hears");
  }
});

test("a daemon that does not read is not written to without end", PATIENCE, async () => {
  const stuck = new Writable({ write() {} });
  const connection = new Connection(new PassThrough(), stuck);
  const payload = JSON.stringify({ value: "x".repeat(8 * 1024 * 1024) });

  const codes = await Promise.all(
    Array.from({ length: 20 }, () => Promise.race([connection.call("a", payload).catch(({ code }) => code), "waits"])),
  );
  const refused = await connection.call("a", payload).catch(({ code }) => code);

  assert.equal(codes.length, 20);
  assert.equal(refused, "IPC_BACKPRESSURE");
  assert.equal(stuck.writableLength < 80 * 1024 * 1024, true);
});
