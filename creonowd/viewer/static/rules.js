// The rules, edited in place. What the author typed is kept when someone else has saved first; a deleted rule can come back.

import { button, byId, byKey, h, patch } from "./dom.js";
import { errorText, locale, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { signal } from "./signals.js";
import { takeBack, toast } from "./undo.js";

const SHOWN = 50;
const NEW = "";
const CONFLICTS = new Set(["CONSTRAINT_CONFLICT", "CONSTRAINT_NOT_FOUND"]);
let drafts = new Map();
let loaded = { projectId: "", constraints: [], revision: "" };
let isExpanded = false;
let searchText = "";
let added = 0; // how many new rules were added: the row of the next one is empty again
let message = { text: () => "", tone: "" };

/** Load the rules of the project. */
export async function loadRules() {
  const { projectId } = place;
  if (projectId !== loaded.projectId) drafts = new Map();
  const listed = await invoke("constraints:list", { projectId });
  if (listed.ok) loaded = { projectId, ...listed.data };
  else message = { text: () => errorText(listed.error), tone: "bad" };
  signal("drawer-contents");
}

/** Show the rules; a row that did not change stays as it is, with what is being typed in it. */
export function showRules(box) {
  const found = searchText ? loaded.constraints.filter((one) => one.text.toLowerCase().includes(searchText)) : loaded.constraints;
  const deleted = [...drafts.keys()].filter((id) => id && !loaded.constraints.some((one) => one.id === id));
  const shown = isExpanded ? found : found.slice(0, SHOWN);
  const parts = [
    loaded.constraints.length > 8 ? { key: "finder", render: () => finder(box) } : null,
    ...shown.map((item, at) => ({ key: `rule:${item.id}`, sign: [item, at, savedText(item)], render: () => row(item, at) })),
    shown.length ? null : { key: "none", render: () => h("p", { class: "faint" }, string("noRules")) },
    shown.length < found.length ? { key: "all", sign: found.length, render: () => allButton(box, found.length) } : null,
    ...deleted.map((id) => ({ key: `deleted:${id}`, sign: drafts.get(id).text, render: () => deletedRow(id) })),
    { key: "new", sign: added, render: newRow },
    { key: "message", sign: [message.text(), message.tone], render: () => h("p", { id: "rules-message", class: `message ${message.tone}`, role: "alert" }, message.text()) },
  ];
  patch(box, parts.filter(Boolean), { key: (one) => one.key, sign: (one) => JSON.stringify([one.sign, locale()]), render: (one) => one.render() });
}

/** Return the text that a rule has elsewhere, if the author has typed over another one. */
function savedText({ id, text }) {
  const draft = drafts.get(id);
  return draft && draft.from !== text ? text : null;
}

function finder(box) {
  const field = h("input", { type: "search", id: "find-rule", value: searchText, "aria-label": string("findRule"), placeholder: string("findRule"), oninput: () => {
    searchText = field.value.trim().toLowerCase();
    showRules(box);
  } });
  return field;
}

const allButton = (box, count) => button(string("showAll", count), () => {
  isExpanded = true;
  showRules(box);
}, { class: "link" });

function row(item, at) {
  const isLocked = item.source === "kg";
  const draft = drafts.get(item.id);
  const field = ruleField({ "data-key": item.id, "aria-label": string("ruleNumber", at + 1), value: draft?.text ?? item.text, disabled: isLocked,
    oninput: () => {
      setDraft(item.id, field.value, item.text);
      saveButton.hidden = !drafts.has(item.id);
    } });
  const saveButton = h("button", { type: "submit", class: "small", hidden: !draft }, string("save"));
  const save = () => writeUndoably("constraints:update", { constraintId: item.id, patch: { text: field.value } }, item.id, "ruleChanged", field.value);
  return h("form", { class: "item", onsubmit: submits(save) }, field, saveButton,
    button(string("remove"), () => remove(item), { class: "small", disabled: isLocked, "data-key": `delete:${item.id}`, "aria-label": `${string("remove")}: ${item.text}` }),
    isLocked ? h("p", { class: "faint" }, string("fromGraph")) : null,
    savedText(item) === null ? null : h("p", { class: "theirs" }, string("nowIs", item.text), " ", button(string("takeTheirs"), () => discard(item.id), { class: "link" })));
}

/** Make the row of a text whose rule someone else has deleted; it can be added as a new one. */
function deletedRow(id) {
  const { text } = drafts.get(id);
  const add = () => writeUndoably("constraints:create", { constraint: { text } }, id, "ruleAdded", text);
  return h("form", { class: "item", onsubmit: submits(add) }, h("input", { value: text, readonly: "", "aria-label": string("gone") }),
    h("button", { type: "submit", class: "small" }, string("add")), button(string("discard"), () => discard(id), { class: "small" }),
    h("p", { class: "theirs" }, string("gone")));
}

function newRow() {
  const field = ruleField({ id: "new-rule", "aria-label": string("newRule"), placeholder: string("newRule"),
    value: drafts.get(NEW)?.text ?? "", oninput: () => setDraft(NEW, field.value, "") });
  const add = () => field.value.trim() && writeUndoably("constraints:create", { constraint: { text: field.value } }, NEW, "ruleAdded", field.value);
  return h("form", { class: "item", onsubmit: submits(add) }, field, h("button", { type: "submit", class: "small" }, string("add")));
}

/** Make the field of a rule, as high as its text; Enter saves it. */
function ruleField({ value, ...attributes }) {
  const field = h("textarea", { rows: "1", ...attributes, onkeydown: (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    field.form.requestSubmit();
  } });
  field.value = value;
  return field;
}

const submits = (work) => (event) => {
  event.preventDefault();
  work();
};

function setDraft(id, text, from) {
  if (text === from) drafts.delete(id);
  else drafts.set(id, { from: drafts.get(id)?.from ?? from, text });
}

function discard(id) {
  drafts.delete(id);
  signal("drawer-contents");
}

/** Delete a rule; undo puts the same rule back where it was. */
async function remove(item) {
  const at = loaded.constraints.findIndex((one) => one.id === item.id);
  const hadFocus = document.activeElement?.dataset.key === `delete:${item.id}`;
  const answer = await write("constraints:delete", { constraintId: item.id }, item.id);
  if (!answer.ok) return;
  const next = loaded.constraints[Math.min(at, loaded.constraints.length - 1)];
  if (hadFocus) ((next && byKey(`delete:${next.id}`)) || byId("new-rule"))?.focus({ preventScroll: true });
  toast(string("ruleDeleted", item.text), () => undoWrite(answer.data.undo));
}

/** Write a change of the rules, say so, and offer to undo it. */
async function writeUndoably(channel, payload, id, stringName, text) {
  const answer = await write(channel, payload, id);
  if (answer.ok && answer.data.undo) toast(string(stringName, text.trim()), () => undoWrite(answer.data.undo));
}

async function undoWrite(undo) {
  const isBack = await takeBack(undo);
  message = { text: () => "", tone: "" };
  await loadRules();
  signal("place", {});
  return isBack;
}

/** Add a rule; returns the daemon's answer. */
export const addRule = (text) => write("constraints:create", { constraint: { text } }, NEW);

async function write(channel, payload, id) {
  const { projectId, revision } = loaded;
  const answer = await invoke(channel, { projectId, ...payload, expectedRevision: revision });
  if (answer.ok) drafts.delete(id);
  if (answer.ok && id === NEW) added += 1;
  message = { text: () => "", tone: "" };
  await loadRules();
  const isConflict = !answer.ok && CONFLICTS.has(answer.error.code) && loaded.revision !== revision;
  message = answer.ok ? { text: () => string("saved"), tone: "good" } : { text: () => (isConflict ? string("conflict") : errorText(answer.error)), tone: "bad" };
  signal("drawer-contents");
  if (answer.ok) signal("place", {});
  return answer;
}

