// The life of the connection: the token from the address, new ones for a reload and for reconnecting.

import { connect, invoke } from "./rpc.js";
import { setStatus, showConnection } from "./status.js";
import { locale, string } from "./strings.js";

const RETRY_MS = 500;
let tokens = [];
let link = {};

/** Read the token and the project from the address, so that the history has neither.

    A link may come from elsewhere: it counts only if the daemon knows its token, else the stored session goes on. */
export function readAddress() {
  link = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  tokens = [link.token, sessionStorage.getItem("token")].filter(Boolean);
  history.replaceState(null, "", location.pathname);
}

/** Stay connected until the daemon refuses; calls `ready` after every connection and `lost` after every loss. */
export async function stayConnected(ready, lost) {
  for (;;) {
    const { error, closed, token } = await connect({ tokens, locale: locale() });
    if (error && error !== "DISCONNECTED") return showRefused();
    if (closed) {
      if (token === link.token) ["project", "document"].forEach((name) => link[name] && sessionStorage.setItem(name, link[name]));
      link = {};
      await renewTokens(token);
      showConnection("connected");
      ready(); // not awaited: a connection that is lost meanwhile must show at once
      await closed;
    }
    showConnection("disconnected");
    lost();
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

/** Wait until a server answers; by plain requests, because browsers delay repeated WebSocket attempts. */
async function untilReachable() {
  do await new Promise((done) => { setTimeout(done, RETRY_MS); });
  while (!(await fetch("/codes.json").then(() => true, () => false)));
}

function showRefused() {
  showConnection("refused");
  setStatus("error", () => string("tokenGone"));
}
