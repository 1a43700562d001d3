// The connection's life: the token of the address, the next one for a reload, and trying again.

import { connect, invoke } from "./rpc.js";
import { badge, say } from "./status.js";
import { locale, word } from "./strings.js";

const RETRY_MS = 500;
let isRenewed = false;

/** Take the token and the project out of the address, where nobody should find them again. */
export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ["token", "project"]) if (given.get(name)) sessionStorage.setItem(name, given.get(name));
  history.replaceState(null, "", location.pathname);
}

/** Stay connected: call `ready` after each time we get through, `lost` after each time we lose it. */
export async function stay(ready, lost) {
  const again = async () => {
    badge("disconnected");
    lost();
    await reachable();
    stay(ready, lost);
  };
  try {
    await connect({ token: sessionStorage.getItem("token") ?? "", locale: locale(), wary: isRenewed }, again);
  } catch (error) {
    if (error.code !== "DISCONNECTED") refused();
    return;
  }
  const renewed = await invoke("viewer:open", {});
  if (renewed.ok) sessionStorage.setItem("token", renewed.data.token);
  isRenewed = renewed.ok;
  badge("connected");
  await ready();
}

/** Wait until somebody listens there; browsers slow down whoever tries with WebSockets only. */
async function reachable() {
  do await new Promise((done) => { setTimeout(done, RETRY_MS); });
  while (!(await fetch("/codes.json").then(() => true, () => false)));
}

function refused() {
  badge("refused");
  say("error", () => word("tokenGone"));
}
