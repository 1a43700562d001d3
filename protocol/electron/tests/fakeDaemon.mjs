// A fake daemon that misbehaves as the real one never does.
// `BEHAVIOUR` names the way; every start adds a line to the file `STARTS`.
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";

const { BEHAVIOUR, STARTS, PORT } = process.env;
const starts = countStart();
const isBroken =
  BEHAVIOUR === "broken" ||
  (BEHAVIOUR === "broken twice" && starts <= 2) ||
  (BEHAVIOUR === "broken later" && starts > 1);
const INFO = {
  serverInfo: { name: "fake", version: "0" },
  protocolVersion: 1,
  minCompatible: BEHAVIOUR === "from the future" ? 99 : 1,
  contractHash: "",
  role: "owner",
  positionEncoding: "utf-16",
  limits: { maxMessageBytes: 1000, maxInFlight: 1, maxBatch: 1, requestTimeoutMs: 1 },
  channels: [],
};

if (BEHAVIOUR === "child") {
  createConnection(Number(PORT), "127.0.0.1").resume();
} else if (isBroken) {
  process.stderr.write("settings.json is not a JSON object: 墨\n");
  process.exitCode = 3;
} else if (BEHAVIOUR === "mute") {
  process.stdin.resume();
} else {
  if (BEHAVIOUR === "stubborn") {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => {});
    spawn(process.execPath, [process.argv[1]], { env: { ...process.env, BEHAVIOUR: "child" }, stdio: "inherit" });
    setInterval(() => {}, 1000);
  }
  process.stdout.write("this is no message\n\n[1]\n");
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === "fake:die") process.exit(9);
    if (message.method === "fake:deafen") process.stdout.end();
    else if (message.id !== undefined && !(BEHAVIOUR === "stubborn" && message.method === "shutdown")) answer(message);
  });
}

function countStart() {
  if (!STARTS) return 1;
  appendFileSync(STARTS, "started\n");
  return readFileSync(STARTS, "utf8").split("\n").length - 1;
}

function answer({ id, method, params }) {
  const echo = { pid: process.pid, argv: process.argv.slice(2), method, params, utf8: process.env.PYTHONUTF8 };
  const result = method === "initialize" ? { ...INFO, asked: params } : echo;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
