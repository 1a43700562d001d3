// `window.creonow` over a WebSocket: the same invoke and on that the IDE's preload offers.

const GONE = { code: "DISCONNECTED", message: "" };
const DISCONNECTED = { error: { ...GONE, data: GONE } };
const REFUSED = { error: { data: { code: "UNAUTHENTICATED" } } };
const listeners = new Map();
const pending = new Map();
let socket = null;
let lastId = 0;

/** Connect with the first of the tokens that the daemon proves to know; resolves with `{closed, token, role}`, where
    `closed` is a promise of the connection's end, or with `{error}`, a code.

    No token is sent before that: after a crash another program may have the port, and a link may come from elsewhere. */
export function connect({ tokens, locale }) {
  return new Promise((resolve) => {
    socket = new WebSocket(`ws://${location.host}/rpc`);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    const closed = new Promise((ended) => {
      socket.onclose = () => {
        ended();
        for (const settle of pending.values()) settle(DISCONNECTED);
        pending.clear();
        resolve({ error: GONE.code });
      };
    });
    socket.onopen = async () => {
      const token = await provenToken(tokens);
      const answer = token === undefined ? REFUSED : await initialize(locale, token);
      if (!answer.error) return resolve({ closed, token, role: answer.result.role });
      const { code } = answer.error.data;
      if (code !== GONE.code) close();
      return resolve({ error: code });
    };
  });
}

/** Introduce the viewer; `locale` is the language of the daemon's messages. */
export function initialize(locale, token) {
  const params = { clientInfo: { name: "viewer", version: "1" }, positionEncoding: "utf-16", locale };
  return request("initialize", token === undefined ? params : { ...params, token });
}

/** Call a channel; always resolves with `{ok: true, data}` or `{ok: false, error}`. */
export async function invoke(channel, payload) {
  const answer = await request("ipc:invoke", { channel, payload });
  if (answer.error) return { ok: false, error: { ...answer.error.data, message: answer.error.message } };
  return answer.result;
}

export const isConnected = () => socket?.readyState === WebSocket.OPEN;

/** Listen to an event of the daemon; returns a function that ends it. */
export function on(event, listener) {
  if (!listeners.has(event)) listeners.set(event, new Set());
  listeners.get(event).add(listener);
  return () => listeners.get(event).delete(listener);
}

function request(method, params) {
  if (!socket || socket.readyState !== WebSocket.OPEN) return Promise.resolve(DISCONNECTED);
  lastId += 1;
  const id = lastId;
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

async function provenToken(tokens) {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const { result } = await request("viewer:prove", { nonce });
  for (const token of tokens) if (result?.proofs?.includes(await proofOf(token, nonce))) return token;
  return undefined;
}

async function proofOf(token, nonce) {
  const digest = await crypto.subtle.digest("SHA-256", bytes(token));
  const key = await crypto.subtle.importKey("raw", digest, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(nonce))));
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (array) => Array.from(array, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Close without the handling of a loss. */
export function close() {
  socket.onclose = null;
  socket.close();
}

window.creonow = Object.freeze({ invoke, on });
