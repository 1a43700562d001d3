// The document in the editor: read, followed when its file changes, and typed into as a draft or the real file.

import { titleOf } from "./bookMap.js";
import { byId, button, changeBetween, copyButton, fillChanged } from "./dom.js";
import { errorText, string } from "./language.js";
import { caret, editsOf, fileText, focusText, followText, openText, select, setText, textState } from "./manuscript.js";
import { go, MASK, place } from "./place.js";
import { invoke } from "./rpc.js";
import { onSignal, signal } from "./signals.js";
import { takeBack, toast } from "./undo.js";

/** `base` is the file as it was read, `edits` all that was typed since, `synced` how many of them the daemon has; `version`
    counts what was synced, 0 means nothing. */
const FRESH = { base: null, version: 0, synced: 0, problem: null, movedOn: false, isNew: false };
const open = { projectId: "", documentId: "", ...FRESH, unsent: [], edits: [] };
/** The drafts of documents that are not open now; each waits until the author comes back to it. */
const keptDrafts = new Map();
let sending = Promise.resolve();

export const isDraft = () => open.version > 0;
export const openProblem = () => open.problem;

/** Whether the editor has the document of the address; one whose reading ended with the connection it has not. */
export const isOpen = () => Boolean(open.documentId) && keyOf(open) === keyOf(place) && open.problem?.code !== "DISCONNECTED";

/** Read a document and show it; the caret goes to `cursor`, or to the end. A draft that is open stays as it is. */
export async function openDocument(documentId, { cursor, anchor = cursor } = {}) {
  await sendTyped();
  const { projectId } = place;
  if (open.edits.length && keyOf(open) === keyOf({ projectId, documentId })) return cursor !== undefined && select(anchor, cursor);
  await putDraftAway();
  const answer = await invoke("context:document:read", { projectId, documentId });
  const draft = keptDrafts.get(keyOf({ projectId, documentId }));
  if (draft && (answer.ok || draft.isNew)) return openDraft(draft, answer.data, { cursor, anchor });
  Object.assign(open, { projectId, documentId, ...FRESH, ...(answer.ok ? { base: answer.data } : { problem: answer.error }), unsent: [], edits: [] });
  const text = answer.ok ? answer.data.text : "";
  const at = Math.min(cursor ?? text.length, text.length);
  openText(text, { cursor: at, anchor: Math.min(anchor ?? at, text.length), isLocked: !answer.ok });
  return announceOpened();
}

function announceOpened() {
  go({ documentId: open.documentId, ...caret() });
  signal("document", open.documentId);
  showHead();
}

const keyOf = ({ projectId, documentId }) => `${projectId} ${documentId}`;

/** Go on with a draft where the author left it. */
async function openDraft(draft, file, { cursor, anchor }) {
  keptDrafts.delete(keyOf(draft));
  const { text, ...kept } = draft;
  Object.assign(open, kept, { version: 0, synced: 0, unsent: [], movedOn: !draft.isNew && file.revision !== draft.base.revision });
  setText(text);
  if (cursor !== undefined) select(anchor, cursor);
  await sendTyped();
  announceOpened();
}

/** Begin a document that has no file yet; it is a draft from the first key on. */
export function beginDocument(documentId, writable) {
  Object.assign(open, { projectId: place.projectId, documentId, ...FRESH, base: { text: "", revision: "", length: 0, writable }, isNew: true, unsent: [], edits: [] });
  openText("");
  go({ documentId, cursor: 0, anchor: 0 });
  signal("document", documentId);
  showHead();
}

/** Drop what was typed and show the file again; until the page is left that can be undone. */
export async function discardDraft() {
  await sendTyped();
  const dropped = { ...open, text: textState() };
  await closeDraft();
  Object.assign(open, { edits: [], unsent: [] });
  if (open.isNew) closeNew();
  else {
    await openDocument(open.documentId, caret());
    focusText();
  }
  toast(string("discarded"), () => takeUp(dropped));
}

/** Go on with a draft that was dropped, unless there is another one by now. */
async function takeUp(draft) {
  const key = keyOf(draft);
  if (keptDrafts.has(key) || (open.edits.length && keyOf(open) === key)) {
    toast(string("newerDraft"));
    return false;
  }
  keptDrafts.set(key, draft);
  await openDocument(draft.documentId);
  focusText();
  return true;
}

/** Close a document that never had a file. */
function closeNew() {
  Object.assign(open, { documentId: "", ...FRESH });
  openText("");
  go({ documentId: "", cursor: 0, anchor: 0 });
  showHead();
  signal("closed");
}

/** Keep what was typed for when the author comes back to this document; the daemon forgets it until then. */
async function putDraftAway() {
  if (!open.version || !open.edits.length) return closeDraft();
  keptDrafts.set(keyOf(open), { ...open, text: textState() });
  toast(string("draftWaits", titleOf(open.documentId)));
  return closeDraft();
}

async function closeDraft() {
  await sending;
  if (!open.version) return;
  const { projectId, documentId } = open;
  await invoke("context:document:close", { projectId, documentId });
  open.version = 0;
}

/** Send what was typed since the last time; requests that follow see it. */
export const sendTyped = () => inTurn(sync);

/** Do some work once what was asked before is done: a save and what is typed meanwhile must not meet. */
function inTurn(work) {
  sending = sending.then(work);
  return sending;
}

async function sync() {
  takeTyped();
  const { documentId, version, edits } = open;
  const upTo = edits.length;
  if (upTo === open.synced && (version || !open.isNew)) return;
  const from = version ? { baseVersion: version, edits: edits.slice(open.synced) } : fromTheFile();
  const answer = await invoke("context:document:sync", { projectId: place.projectId, documentId, version: version + 1, ...from });
  if (open.edits !== edits) return;
  if (answer.ok) Object.assign(open, { version: version + 1, synced: upTo });
  else if (answer.error.code !== "DISCONNECTED") toast(errorText(answer.error));
  showHead();
}

/** Note what was typed since the last time as edits of the file. */
function takeTyped() {
  open.edits.push(...open.unsent.flatMap(editsOf));
  open.unsent = [];
}

/** All that was typed, as edits of the file: a whole text would put masks in the place of secrets. Of a file that has
    changed since there is only the whole text. */
function fromTheFile() {
  const isWhole = open.isNew || (open.movedOn && !open.base.secrets?.length);
  return isWhole ? { text: fileText() } : { baseRevision: open.base.revision, edits: open.edits };
}

/** After a new connection the daemon has forgotten the draft: send all of it again. */
export async function resend() {
  if (!open.version) return;
  await inTurn(() => {
    Object.assign(open, { version: 0, synced: 0 });
    return sync();
  });
}

/** Files changed on the disk: follow the one that is open, or say so if the author has typed meanwhile. */
export async function fileChanged(paths = [open.documentId]) {
  if (!open.documentId || open.isNew || !paths.includes(open.documentId)) return;
  await inTurn(follow);
}

async function follow() {
  const { documentId, edits } = open;
  const answer = await invoke("context:document:read", { projectId: place.projectId, documentId, onDisk: isDraft() });
  if (open.edits !== edits || !answer.ok || answer.data.revision === open.base?.revision) return;
  if (edits.length || open.unsent.length) open.movedOn = true;
  else {
    Object.assign(open, { base: answer.data, problem: null });
    go(followText(answer.data.text));
  }
  showHead();
}

/** Write what was typed into the real file. */
async function save() {
  sendTyped();
  await inTurn(write);
}

/** Write the edits of now; those that come while the file is written belong to the file as it is then. */
async function write() {
  const { documentId, base, edits, isNew } = open;
  const target = { projectId: place.projectId, documentId };
  const now = open.movedOn ? await invoke("context:document:read", { ...target, onDisk: true }) : null;
  if (now && !now.ok) return toast(errorText(now.error));
  takeTyped();
  const count = edits.length;
  if (!count) return undefined;
  const change = now ? replacementFor(now.data) : { revision: base.revision, edits: edits.slice() };
  if (change.edits.some((one) => one.text.includes(MASK))) return toast(string("maskTyped"));
  const answer = await invoke("context:document:write", { ...target, ...change });
  if (!answer.ok) return toast(errorText(answer.error));
  await invoke("context:document:close", target);
  const read = await invoke("context:document:read", target);
  if (open.edits !== edits) return undefined;
  edits.splice(0, count);
  Object.assign(open, { version: 0, synced: 0, base: read.ok ? read.data : base, movedOn: false, isNew: false });
  showHead();
  focusText();
  return toast(string("savedFile"), async () => {
    const isBack = await takeBack(answer.data.undo);
    if (isBack && isNew) await returnToDraft(documentId);
    else await fileChanged();
    return isBack;
  });
}

/** Put the author's text in the place of what the file has now. */
function replacementFor({ text, revision }) {
  const edit = changeBetween(text, fileText());
  return { revision, edits: edit ? [edit] : [] };
}

/** The file that was made is gone again: its text is a draft, as before. */
async function returnToDraft(documentId) {
  if (open.documentId !== documentId) return;
  takeTyped();
  Object.assign(open, FRESH, { base: { text: "", revision: "", length: 0, writable: true }, isNew: true, edits: [{ from: 0, to: 0, text: fileText() }] });
  await sendTyped();
}

/** Show the name of the document, what kind of copy this is, and what can be done with it. */
export function showHead() {
  byId("document-title").textContent = open.documentId && titleOf(open.documentId);
  let text = "";
  if (open.version && open.movedOn) text = string("fileMovedOn");
  else if (open.version) text = string(open.isNew ? "draftNew" : "draft");
  else if (open.base?.secrets?.length) text = string("secretsMasked", open.base.secrets.length);
  byId("text-note").textContent = text;
  byId("text-note").dataset.state = open.version ? "draft" : "file";
  fillChanged(byId("text-actions"), [open.version > 0, open.base?.writable, open.isNew, open.movedOn, open.documentId], actions);
}

function actions() {
  if (!open.version) return [];
  const discard = button(string("discard"), discardDraft, { class: "small" });
  const label = open.isNew ? string("saveNew", open.documentId) : string(open.movedOn ? "saveMine" : "saveFile");
  if (open.base.writable) return [button(label, save, { class: "small primary", id: "save-file" }), discard];
  const copy = copyButton(string("copy"), fileText, { class: "small", done: string("copied"), failed: string("copyFailed") });
  return [copy, button(string("howToSave"), () => toast(string("howToSaveDo")), { class: "link" }), discard];
}

addEventListener("beforeunload", (event) => {
  if (isDraft() || keptDrafts.size) event.preventDefault();
});
onSignal("typed", (update) => open.unsent.push(update));
onSignal(["inspected", "subjects-loaded", "language"], showHead);
onSignal("caret", (moved) => go(moved));
