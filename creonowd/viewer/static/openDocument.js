// The document in the editor: read, followed when its file changes, and typed into as a scratch copy or the real file.

import { titleOf } from "./bookMap.js";
import { byId, button, fillChanged } from "./dom.js";
import { errorText, string } from "./language.js";
import { caret, currentText, editsOf, focusText, followText, openText } from "./manuscript.js";
import { go, MASK, place } from "./place.js";
import { invoke } from "./rpc.js";
import { signal, when } from "./signals.js";
import { takeBack, toast } from "./undo.js";

/** `base` is the file as it was read, `edits` all that was typed since; `version` counts what was synced, 0 means nothing. */
const open = { documentId: "", base: null, version: 0, unsent: [], edits: [], problem: null, movedOn: false, isNew: false };
let sending = Promise.resolve();

export const isScratch = () => open.version > 0;
export const openProblem = () => open.problem;

/** Read a document and show it; the caret goes to `cursor`, or to the end. */
export async function openDocument(documentId, { cursor, anchor } = {}) {
  await closeScratch();
  const answer = await invoke("context:document:read", { projectId: place.projectId, documentId });
  Object.assign(open, { documentId, base: answer.ok ? answer.data : null, version: 0, unsent: [], edits: [], movedOn: false, isNew: false });
  open.problem = answer.ok ? null : answer.error;
  const text = answer.ok ? answer.data.text : "";
  const at = Math.min(cursor ?? text.length, text.length);
  openText(text, { cursor: at, anchor: Math.min(anchor ?? at, text.length), isLocked: !answer.ok });
  go({ documentId, ...caret() });
  signal("document", documentId);
  showHead();
}

/** Begin a document that has no file yet; it is a scratch copy from the first key on. */
export function beginDocument(documentId) {
  Object.assign(open, { documentId, base: { text: "", revision: "", length: 0, writable: false }, version: 0, unsent: [], edits: [], problem: null, movedOn: false, isNew: true });
  openText("");
  go({ documentId, cursor: 0, anchor: 0 });
  signal("document", documentId);
  showHead();
}

/** Drop what was typed and show the file again. */
export async function discardScratch() {
  await openDocument(open.documentId, caret());
  focusText();
}

async function closeScratch() {
  if (!open.version) return;
  await sending;
  await invoke("context:document:close", { projectId: place.projectId, documentId: open.documentId });
}

/** Send what was typed since the last time; requests that follow see it. */
export function sendTyped() {
  if (!open.unsent.length && !(open.isNew && !open.version)) return sending;
  const edits = open.unsent.flatMap(editsOf);
  open.unsent = [];
  open.edits.push(...edits);
  sending = sending.then(() => sync(edits));
  return sending;
}

async function sync(edits) {
  const { documentId, version } = open;
  const from = version ? { baseVersion: version, edits } : fromTheFile();
  const answer = await invoke("context:document:sync", { projectId: place.projectId, documentId, version: version + 1, ...from });
  if (open.documentId !== documentId) return;
  if (answer.ok) open.version = version + 1;
  else if (answer.error.code !== "DISCONNECTED") toast(errorText(answer.error));
  showHead();
}

/** All that was typed, as edits of the file: a whole text would put masks in the place of secrets. */
const fromTheFile = () => (open.isNew ? { text: currentText() } : { baseRevision: open.base.revision, edits: open.edits });

/** After a new connection the daemon has forgotten the scratch copy: send all of it again. */
export async function resend() {
  if (!open.version) return;
  await sending;
  open.version = 0;
  await sync([]);
}

/** Files changed on the disk: follow the one that is open, or say so if the author has typed meanwhile. */
export async function fileChanged(paths = [open.documentId]) {
  if (!open.documentId || open.isNew) return;
  if (open.version) {
    open.movedOn ||= paths.includes(open.documentId);
    showHead();
    return;
  }
  const answer = await invoke("context:document:read", { projectId: place.projectId, documentId: open.documentId });
  if (!answer.ok || open.version || answer.data.revision === open.base?.revision) return;
  open.base = answer.data;
  open.problem = null;
  go(followText(answer.data.text));
  showHead();
}

/** Write what was typed into the real file. */
async function save() {
  await sendTyped();
  const { documentId, base, edits } = open;
  if (edits.some((one) => one.text.includes(MASK))) return toast(string("maskTyped"));
  const target = { projectId: place.projectId, documentId };
  const answer = await invoke("context:document:write", { ...target, revision: base.revision, edits });
  if (!answer.ok) return toast(errorText(answer.error));
  await invoke("context:document:close", target);
  const read = await invoke("context:document:read", target);
  Object.assign(open, { version: 0, edits: [], base: read.ok ? read.data : base, movedOn: false });
  showHead();
  focusText();
  return toast(string("savedFile"), async () => {
    const isBack = await takeBack(answer.data.undo);
    await fileChanged();
    return isBack;
  });
}

/** Show the name of the document, what kind of copy this is, and what can be done with it. */
export function showHead() {
  byId("document-title").textContent = open.documentId && titleOf(open.documentId);
  let text = "";
  if (open.problem) text = errorText(open.problem);
  else if (open.version && open.movedOn) text = string("fileMovedOn");
  else if (open.version) text = string(open.isNew ? "scratchNew" : "scratch");
  else if (open.base?.secrets?.length) text = string("secretsMasked", open.base.secrets.length);
  byId("text-note").textContent = text;
  byId("text-note").dataset.state = open.version ? "scratch" : "file";
  fillChanged(byId("text-actions"), [open.version > 0, open.base?.writable, open.isNew], actions);
}

function actions() {
  if (!open.version) return [];
  const discard = button(string("discard"), discardScratch, { class: "small" });
  if (open.base.writable) return [button(string("saveFile"), save, { class: "small primary", id: "save-file" }), discard];
  return open.isNew ? [] : [button(string("howToSave"), () => toast(string("howToSaveDo")), { class: "link" }), discard];
}

addEventListener("beforeunload", (event) => {
  if (isScratch()) event.preventDefault();
});
when("typed", (update) => open.unsent.push(update));
when(["inspected", "subjects-loaded", "language"], showHead);
when("caret", (moved) => go(moved));
