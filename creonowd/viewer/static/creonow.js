// `window.creonow` over a WebSocket: the same invoke and on that the IDE's preload offers.

const listeners = new Map();
const pending = new Map();
let socket = null;
let sent = 0;

/** Connect and show the token; resolves with what the daemon tells about itself. */
export function connect(token, onClose) {
  return new Promise((resolve, reject) => {
    socket = new WebSocket(`ws://${location.host}/rpc`);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onerror = () => reject(failure("DISCONNECTED"));
    socket.onclose = () => {
      for (const settle of pending.values()) settle({ ok: false, error: { code: "DISCONNECTED", message: "" } });
      pending.clear();
      reject(failure("DISCONNECTED"));
      onClose();
    };
    socket.onopen = async () => {
      const hello = { clientInfo: { name: "viewer", version: "1" }, positionEncoding: "utf-16", token };
      const answer = await request("initialize", hello);
      if (answer.error) reject(failure(answer.error.data.code));
      else resolve(answer.result);
    };
  });
}

/** Call a channel; always resolves with `{ok: true, data}` or `{ok: false, error}`. */
export async function invoke(channel, payload) {
  const answer = await request("ipc:invoke", { channel, payload });
  if (answer.ok === false) return answer;
  if (answer.error) return { ok: false, error: { code: answer.error.data.code, message: answer.error.message } };
  return answer.result;
}

/** Listen to an event of the daemon; returns what ends it. */
export function on(event, listener) {
  if (!listeners.has(event)) listeners.set(event, new Set());
  listeners.get(event).add(listener);
  return () => listeners.get(event).delete(listener);
}

function request(method, params) {
  if (!socket || socket.readyState !== WebSocket.OPEN) {
    return Promise.resolve({ ok: false, error: { code: "DISCONNECTED", message: "" } });
  }
  sent += 1;
  const id = sent;
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return new Promise((settle) => pending.set(id, settle));
}

function receive(message) {
  if (message.method) {
    for (const listener of listeners.get(message.method) ?? []) listener(message.params);
    return;
  }
  pending.get(message.id)?.(message);
  pending.delete(message.id);
}

function failure(code) {
  return Object.assign(new Error(code), { code });
}

window.creonow = Object.freeze({ invoke, on });
