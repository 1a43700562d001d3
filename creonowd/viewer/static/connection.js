// The life of the connection: the token from the address, a new one for a reload, reconnecting.

import { connect, invoke } from "./rpc.js";
import { setStatus, showConnection } from "./status.js";
import { locale, string } from "./strings.js";

const RETRY_MS = 500;
let isRenewed = false;

/** Move the token and the project from the address into the session storage, so that the history has neither. */
export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ["token", "project"]) if (given.get(name)) sessionStorage.setItem(name, given.get(name));
  history.replaceState(null, "", location.pathname);
}

/** Stay connected until the daemon refuses; calls `ready` after every connection and `lost` after every loss. */
export async function stayConnected(ready, lost) {
  for (;;) {
    const token = sessionStorage.getItem("token") ?? "";
    const { error, closed } = await connect({ token, locale: locale(), verify: isRenewed });
    if (error && error !== "DISCONNECTED") return showRefused();
    if (closed) {
      await renewToken();
      showConnection("connected");
      ready(); // not awaited: a connection that is lost meanwhile must show at once
      await closed;
    }
    showConnection("disconnected");
    lost();
    await untilReachable();
  }
}

/** Ask for the token of the next connection: each one works once. */
async function renewToken() {
  const renewed = await invoke("viewer:open", {});
  if (renewed.ok) sessionStorage.setItem("token", renewed.data.token);
  isRenewed = renewed.ok;
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
