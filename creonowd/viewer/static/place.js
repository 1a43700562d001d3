// Where the author is: project, document, caret, selection, skill, instruction, pins. It is also the page's address.

import { onSignal, signal } from "./signals.js";

const PAUSE_MS = 250;
const MOST_PINS = 20;
export const GENERAL = "general";
/** What stands for each character of a secret in a text that the author may edit. */
export const MASK = "█";

export const place = {
  projectId: "",
  documentId: "",
  cursor: 0,
  anchor: 0,
  skillId: "builtin:continue",
  instruction: "",
  pinned: [],
  tab: "sees",
  piece: "",
  about: "",
  pane: "",
};

const FIELDS = { project: "projectId", document: "documentId", at: "cursor", from: "anchor", skill: "skillId", tab: "tab", piece: "piece", ask: "about", pane: "pane" };
const NUMBERS = new Set(["cursor", "anchor"]);
let timer = 0;
let written = "";
let viewOf = () => null;

/** Have `describe` say what is in view; that is kept with the address, for a reload. */
export function rememberView(describe) {
  viewOf = describe;
}

/** Change where the author is; signals `place`, so that what the model sees is asked for again. */
export function go(changes) {
  Object.assign(place, changes);
  remember();
  signal("place", changes);
}

/** Note what is looked at, which changes nothing in the prompt. */
export function note(changes) {
  Object.assign(place, changes);
  remember();
}

/** Return the fields of a request that say where the author is. */
export function whereabouts() {
  const [from, to] = [Math.min(place.anchor, place.cursor), Math.max(place.anchor, place.cursor)];
  return {
    projectId: place.projectId,
    documentId: place.documentId,
    cursorPosition: to,
    skillId: place.skillId === GENERAL ? null : place.skillId,
    ...(from < to ? { selection: { from, to } } : {}),
    ...(place.pinned.length ? { pinned: place.pinned } : {}),
  };
}

/** Pin a source to the prompt, or take the pin away. */
export function pin(sourceRef, isPinned = true) {
  const others = place.pinned.filter((one) => one !== sourceRef);
  go({ pinned: isPinned ? [...others, sourceRef].slice(-MOST_PINS) : others });
}

/** Return what an address says; only names that the page knows. */
export function readPlace(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  for (const [name, key] of Object.entries(FIELDS)) {
    if (!fields.has(name)) continue;
    found[key] = NUMBERS.has(key) ? Math.max(0, Math.floor(Number(fields.get(name)) || 0)) : fields.get(name);
  }
  if (fields.has("pin")) found.pinned = fields.getAll("pin").slice(0, MOST_PINS);
  return found;
}

/** Return the address of a place; `changes` makes it that of another piece or tab. */
export function address(changes = {}) {
  const at = { ...place, ...changes };
  const fields = new URLSearchParams();
  for (const [name, key] of Object.entries(FIELDS)) {
    const isUsual = key === "anchor" ? at.anchor === at.cursor : !at[key] && key !== "cursor";
    if (!isUsual) fields.set(name, String(at[key]));
  }
  for (const one of at.pinned) fields.append("pin", one);
  return `#${fields}`;
}

/** Write the place into the address soon, so that a reload comes back to it. */
function remember() {
  clearTimeout(timer);
  timer = setTimeout(writeAddress, PAUSE_MS);
}

export function writeAddress() {
  clearTimeout(timer);
  if (!place.projectId) return;
  written = address();
  history.replaceState(viewOf(), "", written);
}

// What is written when a page hides is lost if it is reloaded; a phone closes pages without unloading them.
for (const end of ["beforeunload", "pagehide"]) addEventListener(end, writeAddress);
onSignal("scrolled", remember);
addEventListener("hashchange", () => {
  if (location.hash === written) return;
  signal("address", readPlace(location.hash));
});
onSignal("address", () => { written = ""; });
