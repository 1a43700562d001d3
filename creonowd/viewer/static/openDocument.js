// The document in the editor: read, followed when its file changes, and typed into as a scratch copy or the real file.

import { titleOf } from "./bookMap.js";
import { byId, button, fillChanged } from "./dom.js";
import { errorText, string } from "./language.js";
import { caret, editsOf, fileText, focusText, followText, openText, select, setText, textState } from "./manuscript.js";
import { go, MASK, place } from "./place.js";
import { invoke } from "./rpc.js";
import { signal, when } from "./signals.js";
import { takeBack, toast } from "./undo.js";

/** `base` is the file as it was read, `edits` all that was typed since, `synced` how many of them the daemon has; `version`
    counts what was synced, 0 means nothing. */
const FRESH = { base: null, version: 0, synced: 0, problem: null, movedOn: false, isNew: false };
const open = { projectId: "", documentId: "", ...FRESH, unsent: [], edits: [] };
/** The drafts of documents that are not open now; each waits until the author comes back to it. */
const drafts = new Map();
let sending = Promise.resolve();

export const isScratch = () => open.version > 0;
export const openProblem = () => open.problem;

/** Read a document and show it; the caret goes to `cursor`, or to the end. A draft that is open stays as it is. */
export async function openDocument(documentId, { cursor, anchor = cursor } = {}) {
  await sendTyped();
  const { projectId } = place;
  if (open.edits.length && keyOf(open) === keyOf({ projectId, documentId })) return cursor !== undefined && select(anchor, cursor);
  await putDraftAway();
  const answer = await invoke("context:document:read", { projectId, documentId });
  const draft = drafts.get(keyOf({ projectId, documentId }));
  if (draft && answer.ok) return openDraft(draft, answer.data, { cursor, anchor });
  Object.assign(open, { projectId, documentId, ...FRESH, ...(answer.ok ? { base: answer.data } : { problem: answer.error }), unsent: [], edits: [] });
  const text = answer.ok ? answer.data.text : "";
  const at = Math.min(cursor ?? text.length, text.length);
  openText(text, { cursor: at, anchor: Math.min(anchor ?? at, text.length), isLocked: !answer.ok });
  return opened();
}

function opened() {
  go({ documentId: open.documentId, ...caret() });
  signal("document", open.documentId);
  showHead();
}

const keyOf = ({ projectId, documentId }) => `${projectId} ${documentId}`;

/** Go on with a draft where the author left it. */
async function openDraft(draft, file, { cursor, anchor }) {
  drafts.delete(keyOf(draft));
  const { text, ...kept } = draft;
  Object.assign(open, kept, { version: 0, synced: 0, unsent: [], movedOn: file.revision !== draft.base.revision });
  setText(text);
  if (cursor !== undefined) select(anchor, cursor);
  await sendTyped();
  opened();
}

/** Begin a document that has no file yet; it is a scratch copy from the first key on. */
export function beginDocument(documentId) {
  Object.assign(open, { projectId: place.projectId, documentId, ...FRESH, base: { text: "", revision: "", length: 0, writable: false }, isNew: true, unsent: [], edits: [] });
  openText("");
  go({ documentId, cursor: 0, anchor: 0 });
  signal("document", documentId);
  showHead();
}

/** Drop what was typed and show the file again. */
export async function discardScratch() {
  await closeScratch();
  Object.assign(open, { edits: [], unsent: [] });
  await openDocument(open.documentId, caret());
  focusText();
}

/** Keep what was typed for when the author comes back to this document; the daemon forgets it until then. */
async function putDraftAway() {
  if (!open.version || !open.edits.length) return closeScratch();
  drafts.set(keyOf(open), { ...open, text: textState() });
  toast(string("draftWaits", titleOf(open.documentId)));
  return closeScratch();
}

async function closeScratch() {
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
  const { documentId, version, edits } = open;
  edits.push(...open.unsent.flatMap(editsOf));
  open.unsent = [];
  const upTo = edits.length;
  if (upTo === open.synced && (version || !open.isNew)) return;
  const from = version ? { baseVersion: version, edits: edits.slice(open.synced) } : fromTheFile();
  const answer = await invoke("context:document:sync", { projectId: place.projectId, documentId, version: version + 1, ...from });
  if (open.edits !== edits) return;
  if (answer.ok) Object.assign(open, { version: version + 1, synced: upTo });
  else if (answer.error.code !== "DISCONNECTED") toast(errorText(answer.error));
  showHead();
}

/** All that was typed, as edits of the file: a whole text would put masks in the place of secrets. Of a file that has
    changed since there is only the whole text. */
function fromTheFile() {
  const isWhole = open.isNew || (open.movedOn && !open.base.secrets?.length);
  return isWhole ? { text: fileText() } : { baseRevision: open.base.revision, edits: open.edits };
}

/** After a new connection the daemon has forgotten the scratch copy: send all of it again. */
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
  const answer = await invoke("context:document:read", { projectId: place.projectId, documentId });
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
  const { documentId, base, edits } = open;
  const saved = edits.slice();
  if (!saved.length) return undefined;
  if (saved.some((one) => one.text.includes(MASK))) return toast(string("maskTyped"));
  const target = { projectId: place.projectId, documentId };
  const answer = await invoke("context:document:write", { ...target, revision: base.revision, edits: saved });
  if (!answer.ok) return toast(errorText(answer.error));
  await invoke("context:document:close", target);
  const read = await invoke("context:document:read", target);
  if (open.edits !== edits) return undefined;
  edits.splice(0, saved.length);
  Object.assign(open, { version: 0, synced: 0, base: read.ok ? read.data : base, movedOn: false });
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
  if (isScratch() || drafts.size) event.preventDefault();
});
when("typed", (update) => open.unsent.push(update));
when(["inspected", "subjects-loaded", "language"], showHead);
when("caret", (moved) => go(moved));
