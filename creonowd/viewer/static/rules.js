// The rules, edited in place. What the author typed is kept when someone else has saved first; a deleted rule can come back.

import { button, fill, h } from "./dom.js";
import { errorText, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { signal } from "./signals.js";
import { takeBack, toast } from "./undo.js";

const SHOWN = 50;
const NEW = "";
const CONFLICTS = new Set(["CONSTRAINT_CONFLICT", "CONSTRAINT_NOT_FOUND"]);
let drafts = new Map();
let loaded = { projectId: "", constraints: [], revision: "" };
let wide = false;
let sought = "";
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

export function showRules(box) {
  const found = sought ? loaded.constraints.filter((one) => one.text.toLowerCase().includes(sought)) : loaded.constraints;
  const rows = found.slice(0, wide ? found.length : SHOWN).map(row);
  const deleted = [...drafts.keys()].filter((id) => id && !loaded.constraints.some((one) => one.id === id));
  const finder = loaded.constraints.length > 8 ? h("input", { type: "search", id: "find-rule", value: sought, "aria-label": string("findRule"), placeholder: string("findRule"), oninput: (event) => {
    sought = event.target.value.trim().toLowerCase();
    showRules(box);
  } }) : null;
  fill(box, finder, ...(rows.length ? rows : [h("p", { class: "faint" }, string("noRules"))]),
    rows.length < found.length ? button(string("showAll", found.length), () => {
      wide = true;
      showRules(box);
    }, { class: "link" }) : null,
    ...deleted.map(deletedRow), newRow(), h("p", { id: "rules-message", class: `message ${message.tone}`, role: "alert" }, message.text()));
  finder?.setSelectionRange(sought.length, sought.length);
}

function row(item, at) {
  const isLocked = item.source === "kg";
  const draft = drafts.get(item.id);
  const field = h("input", { "data-key": item.id, "aria-label": string("ruleNumber", at + 1), value: draft?.text ?? item.text, disabled: isLocked,
    oninput: () => {
      setDraft(item.id, field.value, item.text);
      saveButton.hidden = !drafts.has(item.id);
    } });
  const saveButton = h("button", { type: "submit", class: "small", hidden: !draft }, string("save"));
  const save = () => write("constraints:update", { constraintId: item.id, patch: { text: field.value } }, item.id);
  const isMoved = draft && draft.from !== item.text;
  return h("form", { class: "item", onsubmit: submits(save) }, field, saveButton,
    button(string("remove"), () => remove(item), { class: "small", disabled: isLocked, "aria-label": `${string("remove")}: ${item.text}` }),
    isLocked ? h("p", { class: "faint" }, string("fromGraph")) : null,
    isMoved ? h("p", { class: "theirs" }, string("nowIs", item.text), " ", button(string("takeTheirs"), () => discard(item.id), { class: "link" })) : null);
}

/** Make the row of a text whose rule someone else has deleted; it can be added as a new one. */
function deletedRow(id) {
  const { text } = drafts.get(id);
  const add = () => write("constraints:create", { constraint: { text } }, id);
  return h("form", { class: "item", onsubmit: submits(add) }, h("input", { value: text, readonly: "", "aria-label": string("gone") }),
    h("button", { type: "submit", class: "small" }, string("add")), button(string("discard"), () => discard(id), { class: "small" }),
    h("p", { class: "theirs" }, string("gone")));
}

function newRow() {
  const field = h("input", { id: "new-rule", "aria-label": string("newRule"), placeholder: string("newRule"),
    value: drafts.get(NEW)?.text ?? "", oninput: () => setDraft(NEW, field.value, "") });
  const add = () => field.value.trim() && write("constraints:create", { constraint: { text: field.value } }, NEW);
  return h("form", { class: "item", onsubmit: submits(add) }, field, h("button", { type: "submit", class: "small" }, string("add")));
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
  const answer = await write("constraints:delete", { constraintId: item.id }, item.id);
  if (!answer.ok) return;
  toast(string("ruleDeleted", item.text), async () => {
    const isBack = await takeBack(answer.data.undo);
    await loadRules();
    signal("place", {});
    return isBack;
  });
}

/** Add a rule; returns the daemon's answer. */
export const addRule = (text) => write("constraints:create", { constraint: { text } }, NEW);

async function write(channel, payload, id) {
  const { projectId, revision } = loaded;
  const answer = await invoke(channel, { projectId, ...payload, expectedRevision: revision });
  if (answer.ok) drafts.delete(id);
  message = { text: () => "", tone: "" };
  await loadRules();
  const isConflict = !answer.ok && CONFLICTS.has(answer.error.code) && loaded.revision !== revision;
  message = answer.ok ? { text: () => string("saved"), tone: "good" } : { text: () => (isConflict ? string("conflict") : errorText(answer.error)), tone: "bad" };
  signal("drawer-contents");
  if (answer.ok) signal("place", {});
  return answer;
}

