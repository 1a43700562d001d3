// The constraints, edited in place. What the author typed is kept when someone else has saved first.

import { byId, capped, fill, h } from "./dom.js";
import { invoke } from "./rpc.js";
import { showMessage } from "./status.js";
import { errorText, string } from "./strings.js";

const SHOWN = 50;
const NEW = "";
const CONFLICTS = new Set(["CONSTRAINT_CONFLICT", "CONSTRAINT_NOT_FOUND"]);
let drafts = new Map();
let loaded = { projectId: "", constraints: [], revision: "" };
let wide = false;
let changed = () => {};

/** Load the constraints of a project; calls `onChange` after every write. */
export async function loadConstraints(projectId, onChange) {
  if (projectId !== loaded.projectId) drafts = new Map();
  changed = onChange;
  const listed = await invoke("constraints:list", { projectId });
  if (!listed.ok) return showMessage(byId("constraints-message"), errorText(listed.error), "bad");
  loaded = { projectId, ...listed.data };
  return showConstraints();
}

export function showConstraints() {
  const limit = wide ? loaded.constraints.length : SHOWN;
  const rows = capped(loaded.constraints, limit, string("showAll"), row, () => {
    wide = true;
    showConstraints();
  });
  const deleted = [...drafts.keys()].filter((id) => id && !loaded.constraints.some((one) => one.id === id));
  fill(byId("constraints"), ...(rows.length ? rows : [h("p", { class: "faint" }, string("noConstraints"))]), ...deleted.map(deletedRow), newRow());
}

function row(item, at) {
  const locked = item.source === "kg";
  const draft = drafts.get(item.id);
  const field = h("input", { "data-key": item.id, "aria-label": string("constraint", at + 1), value: draft?.text ?? item.text, disabled: locked,
    oninput: () => {
      setDraft(item.id, field.value, item.text);
      saveButton.disabled = !drafts.has(item.id);
    } });
  const saveButton = h("button", { type: "submit", disabled: !draft }, string("save"));
  const save = () => write("constraints:update", { constraintId: item.id, patch: { text: field.value } }, item.id);
  const remove = () => write("constraints:delete", { constraintId: item.id }, item.id);
  const moved = draft && draft.from !== item.text;
  return h("form", { class: "item", onsubmit: onSubmit(save) }, field,
    saveButton, h("button", { type: "button", disabled: locked, onclick: remove }, string("remove")),
    locked ? h("p", { class: "faint" }, string("fromGraph")) : null,
    moved ? h("p", { class: "theirs" }, string("nowIs", item.text), " ", h("button", { type: "button", class: "quiet", onclick: () => discard(item.id) }, string("takeTheirs"))) : null);
}

/** Make the row of a text whose constraint someone else has deleted; it can be added as a new one. */
function deletedRow(id) {
  const { text } = drafts.get(id);
  const add = () => write("constraints:create", { constraint: { text } }, id);
  return h("form", { class: "item", onsubmit: onSubmit(add) }, h("input", { value: text, readonly: "", "aria-label": string("gone") }),
    h("button", { type: "submit" }, string("add")), h("button", { type: "button", onclick: () => discard(id) }, string("remove")),
    h("p", { class: "theirs" }, string("gone")));
}

function newRow() {
  const field = h("input", { id: "new-constraint", "aria-label": string("newConstraint"), placeholder: string("newConstraint"),
    value: drafts.get(NEW)?.text ?? "", oninput: () => setDraft(NEW, field.value, "") });
  const add = () => field.value.trim() && write("constraints:create", { constraint: { text: field.value } }, NEW);
  return h("form", { class: "item", onsubmit: onSubmit(add) }, field, h("button", { type: "submit" }, string("add")));
}

const onSubmit = (work) => (event) => {
  event.preventDefault();
  work();
};

function setDraft(id, text, from) {
  if (text === from) drafts.delete(id);
  else drafts.set(id, { from: drafts.get(id)?.from ?? from, text });
}

function discard(id) {
  drafts.delete(id);
  showConstraints();
}

async function write(channel, payload, id) {
  const { projectId, revision } = loaded;
  const answer = await invoke(channel, { projectId, ...payload, expectedRevision: revision });
  if (answer.ok) drafts.delete(id);
  await loadConstraints(projectId, changed);
  const element = byId("constraints-message");
  if (answer.ok) {
    showMessage(element, string("saved"), "good");
    changed();
    return;
  }
  const isConflict = CONFLICTS.has(answer.error.code) && loaded.revision !== revision;
  showMessage(element, isConflict ? string("conflict") : errorText(answer.error), "bad");
}
