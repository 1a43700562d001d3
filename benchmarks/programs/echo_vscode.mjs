// An echo server on vscode-jsonrpc: over stdio, or on the Unix socket named in the first argument.
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";

const require = createRequire(path.resolve("protocol", "package.json"));
const rpc = require("vscode-jsonrpc/node");

function serve(input, output) {
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(input),
    new rpc.StreamMessageWriter(output),
  );
  connection.onRequest("e2e:echo", (params) => params);
  connection.listen();
}

const socket = process.argv[2];
if (socket) net.createServer((line) => serve(line, line)).listen(socket);
else serve(process.stdin, process.stdout);
