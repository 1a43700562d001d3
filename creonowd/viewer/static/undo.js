// What was done in the desk and can be undone: a short note with a button, and ⌘Z outside the text.

import { byId, button } from "./dom.js";
import { errorText, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";

const SHOWN_MS = 8000;
const done = [];
let timer = 0;

/** Show a note of what was done; with `undo` it can be undone, now or later. */
export function toast(text, undo) {
  const entry = undo ? { undo } : null;
  if (entry) done.push(entry);
  const box = byId("toast");
  const undoes = entry ? [button(string("undo"), () => undoEntry(entry), { class: "small" })] : [];
  box.replaceChildren(text, ...undoes, button("×", close, { class: "close", "aria-label": string("close") }));
  box.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(hide, SHOWN_MS);
}

/** Undo what was done last; returns whether there was anything. */
export function undoLast() {
  const entry = done.at(-1);
  if (entry) undoEntry(entry);
  return Boolean(entry);
}

/** Forget what could be undone: it belongs to another project. */
export function forgetDone() {
  done.length = 0;
  close();
}

/** Take back a change of a file by what the daemon gave for that. */
export async function takeBack(undo) {
  const answer = await invoke("context:undo", { projectId: place.projectId, undo });
  if (!answer.ok) toast(errorText(answer.error));
  return answer.ok;
}

async function undoEntry(entry) {
  const at = done.indexOf(entry);
  if (at < 0) return;
  done.splice(at, 1);
  close();
  if ((await entry.undo()) !== false) toast(string("undone"));
}

function close() {
  byId("toast").hidden = true;
}

/** Hide the note, unless the author is about to use it. */
function hide() {
  const box = byId("toast");
  if (box.matches(":hover, :focus-within")) {
    timer = setTimeout(hide, SHOWN_MS);
    return;
  }
  close();
}
