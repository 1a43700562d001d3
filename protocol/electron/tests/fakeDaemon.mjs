// A stand-in for a daemon that does what the real one never does. `MOOD` says what; `DIARY` counts starts.
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";

const { MOOD, DIARY, PORT } = process.env;
const starts = DIARY ? (appendFileSync(DIARY, "started\n"), readFileSync(DIARY, "utf8").split("\n").length - 1) : 1;
const welcome = {
  serverInfo: { name: "misbehaving", version: "0" },
  protocolVersion: 1,
  minCompatible: MOOD === "from the future" ? 99 : 1,
  contractHash: "",
  role: "owner",
  positionEncoding: "utf-16",
  limits: { maxMessageBytes: 1000, maxInFlight: 1, maxBatch: 1, requestTimeoutMs: 1 },
  channels: [],
};

function answer({ id, method, params }) {
  const echo = { pid: process.pid, argv: process.argv.slice(2), method, params, utf8: process.env.PYTHONUTF8 };
  const result = method === "initialize" ? { ...welcome, asked: params } : echo;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}

if (MOOD === "child") {
  createConnection(Number(PORT), "127.0.0.1").resume();
} else if (MOOD === "broken" || (MOOD === "broken twice" && starts <= 2) || (MOOD === "broken later" && starts > 1)) {
  process.stderr.write("settings.json is not a JSON object: 墨\n");
  process.exitCode = 3;
} else if (MOOD === "mute") {
  process.stdin.resume();
} else {
  if (MOOD === "stubborn") {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => {});
    spawn(process.execPath, [process.argv[1]], { env: { ...process.env, MOOD: "child" }, stdio: "inherit" });
    setInterval(() => {}, 1000);
  }
  process.stdout.write("this is no message\n\n[1]\n");
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === "fake:die") process.exit(9);
    if (message.method === "fake:deafen") process.stdout.end();
    else if (message.id !== undefined && !(MOOD === "stubborn" && message.method === "shutdown")) answer(message);
  });
}
