// The keys of the desk: ⌘K asks, ⌘↵ runs, ⌘Z undoes, J and K walk, / finds, Escape closes.

import { close as closeCard } from "./card.js";
import { closeDrawer } from "./drawer.js";
import { byId } from "./dom.js";
import { findInText, hasFocus } from "./manuscript.js";
import { walk } from "./pieceList.js";
import { place } from "./place.js";
import { askField } from "./question.js";
import { run } from "./run.js";
import { undoLast } from "./undo.js";

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Write a shortcut as this system does. */
export const shortcut = (key) => (isMac ? `⌘${key}` : `Ctrl+${key}`);

const isField = (element) => element?.matches?.("input, textarea, select") || hasFocus();

function pressed(event) {
  if (event.isComposing) return;
  const isCommand = isMac ? event.metaKey : event.ctrlKey;
  const does = isCommand ? COMMANDS[event.key.toLowerCase()] : PLAIN[event.key];
  if (!does || (!isCommand && event.key !== "Escape" && (isField(document.activeElement) || event.altKey || event.ctrlKey || event.metaKey))) return;
  if (does() !== false) event.preventDefault();
}

const COMMANDS = {
  k: askField,
  enter: () => run(),
  z: () => (isField(document.activeElement) ? false : undoLast()),
};

const PLAIN = {
  j: () => walk(place.tab, 1),
  k: () => walk(place.tab, -1),
  "/": find,
  Escape: () => closeCard() || closeDrawer(),
};

/** Find in the open tab, or in the manuscript where the tab has no field. */
function find() {
  const field = byId(place.tab).querySelector("[data-find]");
  if (!field || byId("panel").hidden) return findInText();
  field.focus();
  return field.select();
}

export function listenToKeys() {
  addEventListener("keydown", pressed);
}
