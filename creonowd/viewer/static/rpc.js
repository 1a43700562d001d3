// `window.creonow` over a WebSocket: the same invoke and on that the IDE's preload offers.

const GONE = { code: "DISCONNECTED", message: "" };
const REFUSED = { error: { data: { code: "UNAUTHENTICATED" } } };
const listeners = new Map();
const pending = new Map();
let socket = null;
let sent = 0;

/** Connect and show the token; `lost` is called when a connection ends that was not refused.

    With `wary`, the daemon must prove first that it knows the token: after a crash the port may be another's. */
export function connect({ token, locale, wary }, lost) {
  return new Promise((resolve, reject) => {
    socket = new WebSocket(`ws://${location.host}/rpc`);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onclose = () => {
      for (const settle of pending.values()) settle({ error: { ...GONE, data: GONE } });
      pending.clear();
      reject(failure(GONE.code));
      lost();
    };
    socket.onopen = async () => {
      const answer = wary && !(await proves(token)) ? REFUSED : await introduce(locale, token);
      if (!answer.error) return resolve(answer.result);
      const { code } = answer.error.data;
      if (code !== GONE.code) hangUp();
      return reject(failure(code));
    };
  });
}

/** Tell the daemon who we are and which language its messages should have. */
export function introduce(locale, token) {
  const hello = { clientInfo: { name: "viewer", version: "1" }, positionEncoding: "utf-16", locale };
  return request("initialize", token === undefined ? hello : { ...hello, token });
}

/** Call a channel; always resolves with `{ok: true, data}` or `{ok: false, error}`. */
export async function invoke(channel, payload) {
  const answer = await request("ipc:invoke", { channel, payload });
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
  if (!socket || socket.readyState !== WebSocket.OPEN) return Promise.resolve({ error: { ...GONE, data: GONE } });
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

async function proves(token) {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const digest = await crypto.subtle.digest("SHA-256", bytes(token));
  const key = await crypto.subtle.importKey("raw", digest, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const proof = hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(nonce))));
  const answer = await request("viewer:prove", { nonce });
  return answer.result?.proofs.includes(proof) ?? false;
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (array) => Array.from(array, (byte) => byte.toString(16).padStart(2, "0")).join("");

function hangUp() {
  socket.onclose = null;
  socket.close();
}

function failure(code) {
  return Object.assign(new Error(code), { code });
}

window.creonow = Object.freeze({ invoke, on });
