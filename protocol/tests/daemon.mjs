// The real daemon in a folder of its own, and `vscode-jsonrpc` connected to it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import rpc from "vscode-jsonrpc/node";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
process.env.CREONOW_WARM_UP ??= "false"; // a daemon that lives for one test does not load tokenizers ahead
const WINDOWS = process.platform === "win32";
export const COMMAND = join(ROOT, ".venv", ...(WINDOWS ? ["Scripts", "creonowd.exe"] : ["bin", "creonowd"]));

/** Make a test context for a daemon that many tests share; `end` runs its tasks, the last one first. */
export function suiteContext() {
  const tasks = [];
  return {
    after: (task) => tasks.unshift(task),
    async end() {
      for (const task of tasks) await task();
    },
  };
}

/** Make a user-data folder that goes away with the test. */
export function userData(test) {
  const folder = mkdtempSync(join(tmpdir(), "creonow 用户 "));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Spawn a daemon and connect to it over stdio; it is ready once it has answered. */
export async function spawnDaemon(test, folder) {
  const child = spawn(COMMAND, ["serve", "--stdio", "--user-data", folder], {
    env: { ...process.env, CREONOW_E2E: "1", PYTHONUTF8: "1" },
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const exited = once(child, "exit");
  const connection = openConnection(child.stdout, child.stdin);
  const faults = [];
  connection.onError(([error]) => faults.push(error));
  test.after(async () => {
    connection.dispose();
    child.stdin.end();
    await exited;
  });
  await connection.sendRequest("app:ping");
  return { child, connection, exited, faults, folder, stderr: () => stderr };
}

/** Connect to a running daemon through its endpoint file: a Unix socket, or TCP on Windows. */
export async function attach(test, folder) {
  const file = readFileSync(join(folder, "run", "endpoint.json"), "utf8");
  const { address, token } = JSON.parse(file).endpoints[0];
  const [host, port] = address.split(":");
  const socket = token ? createConnection(Number(port), host) : createConnection(address);
  await once(socket, "connect");
  const connection = openConnection(socket, socket);
  test.after(() => {
    connection.dispose();
    socket.destroy();
  });
  if (token) {
    await connection.sendRequest("initialize", { token });
  }
  return connection;
}

function openConnection(input, output) {
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(input),
    new rpc.StreamMessageWriter(output),
  );
  connection.listen();
  return connection;
}
