// The life of the connection: the token from the address, new ones for a reload and for reconnecting.

import { locale } from "./language.js";
import { readPlace } from "./place.js";
import { close, connect, invoke } from "./rpc.js";
import { signal } from "./signals.js";

const RETRY_MS = 500;
let tokens = [];
let fromAddress = {};
let retry = () => {};

/** Read the token and the place from the address, so that the history has no token.

    A link may come from elsewhere: one with a token counts only if the daemon knows that token and it is no page's, else
    the stored session goes on. */
export function readAddress() {
  const { token } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const place = readPlace(location.hash);
  fromAddress = { token, place };
  tokens = [token, sessionStorage.getItem("token")].filter(Boolean);
  if (token) history.replaceState(null, "", location.pathname);
  return token ? {} : place;
}

/** Stay connected until the daemon refuses; calls `ready` with the place of the address after every connection. */
export async function stayConnected(ready) {
  signal("connection", "connecting");
  for (;;) {
    const { error, closed, token, role } = await connect({ tokens, locale: locale() });
    if (closed && role !== "owner" && tokens.at(-1) !== token) {
      close();
      tokens = tokens.slice(tokens.indexOf(token) + 1);
      continue;
    }
    if (error && error !== "DISCONNECTED") {
      signal("connection", "refused");
      return;
    }
    if (closed) {
      const from = token === fromAddress.token ? fromAddress.place : {};
      fromAddress = {};
      await renewTokens(token);
      signal("connection", "connected");
      ready(from); // not awaited: a connection that is lost meanwhile must show at once
      await closed;
    }
    signal("connection", "disconnected");
    await untilReachable();
  }
}

/** Ask for the tokens of the next connection: each one works once.

    The one that outlives the daemon stays in memory; what is stored for a reload ends with the daemon, because after
    a crash whoever takes the port could read it. */
async function renewTokens(used) {
  const [next, reload] = await Promise.all([invoke("viewer:open", {}), invoke("viewer:open", { transient: true })]);
  tokens = [next.ok ? next.data.token : used];
  sessionStorage.setItem("token", reload.ok ? reload.data.token : used);
}

/** Try to connect now instead of after the pause. */
export const retryNow = () => retry();

/** Wait until a server answers; by plain requests, because browsers delay repeated WebSocket attempts. */
async function untilReachable() {
  do {
    await new Promise((done) => {
      retry = done;
      setTimeout(done, RETRY_MS);
    });
  } while (!(await fetch("/codes.json").then(() => true, () => false)));
}
