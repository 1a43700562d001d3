// The constraints, edited in place. What is typed is never thrown away because someone else was first.

import { invoke } from "./rpc.js";
import { byId, capped, fill, h } from "./dom.js";
import { whisper } from "./status.js";
import { spellError, word } from "./strings.js";

const SHOWN = 50;
const NEW = "";
const CONFLICTS = new Set(["CONSTRAINT_CONFLICT", "CONSTRAINT_NOT_FOUND"]);
let drafts = new Map();
let held = { projectId: "", constraints: [], revision: "" };
let wide = false;
let changed = () => {};

/** Load the constraints of a project; `onChange` is called after every write. */
export async function loadConstraints(projectId, onChange) {
  if (projectId !== held.projectId) drafts = new Map();
  changed = onChange;
  const listed = await invoke("constraints:list", { projectId });
  if (!listed.ok) return whisper(byId("constraints-told"), spellError(listed.error), "bad");
  held = { projectId, ...listed.data };
  return showConstraints();
}

export function showConstraints() {
  const limit = wide ? held.constraints.length : SHOWN;
  const rows = capped(held.constraints, limit, word("showAll"), row, () => {
    wide = true;
    showConstraints();
  });
  const gone = [...drafts.keys()].filter((id) => id && !held.constraints.some((one) => one.id === id));
  fill(byId("constraints"), ...(rows.length ? rows : [h("p", { class: "faint" }, word("noConstraints"))]), ...gone.map(orphan), adding());
}

function row(item, at) {
  const locked = item.source === "kg";
  const draft = drafts.get(item.id);
  const field = h("input", { id: item.id, "aria-label": word("constraint", at + 1), value: draft?.text ?? item.text, disabled: locked,
    oninput: () => {
      keep(item.id, field.value, item.text);
      saving.disabled = !drafts.has(item.id);
    } });
  const saving = h("button", { type: "submit", disabled: !draft }, word("save"));
  const save = () => write("constraints:update", { constraintId: item.id, patch: { text: field.value } }, item.id);
  const remove = () => write("constraints:delete", { constraintId: item.id }, item.id);
  const moved = draft && draft.from !== item.text;
  return h("form", { class: "item", onsubmit: submitting(save) }, field,
    saving, h("button", { type: "button", disabled: locked, onclick: remove }, word("remove")),
    locked ? h("p", { class: "faint" }, word("fromGraph")) : null,
    moved ? h("p", { class: "theirs" }, word("nowIs", item.text), " ", h("button", { type: "button", class: "quiet", onclick: () => forget(item.id) }, word("takeTheirs"))) : null);
}

/** A text whose constraint someone else has deleted: it can still be added as a new one. */
function orphan(id) {
  const { text } = drafts.get(id);
  const add = () => write("constraints:create", { constraint: { text } }, id);
  return h("form", { class: "item", onsubmit: submitting(add) }, h("input", { value: text, readonly: "", "aria-label": word("gone") }),
    h("button", { type: "submit" }, word("add")), h("button", { type: "button", onclick: () => forget(id) }, word("remove")),
    h("p", { class: "theirs" }, word("gone")));
}

function adding() {
  const field = h("input", { id: "new-constraint", "aria-label": word("newConstraint"), placeholder: word("newConstraint"),
    value: drafts.get(NEW)?.text ?? "", oninput: () => keep(NEW, field.value, "") });
  const add = () => field.value.trim() && write("constraints:create", { constraint: { text: field.value } }, NEW);
  return h("form", { class: "item", onsubmit: submitting(add) }, field, h("button", { type: "submit" }, word("add")));
}

const submitting = (work) => (event) => {
  event.preventDefault();
  work();
};

function keep(id, text, from) {
  if (text === from) drafts.delete(id);
  else drafts.set(id, { from: drafts.get(id)?.from ?? from, text });
}

function forget(id) {
  drafts.delete(id);
  showConstraints();
}

async function write(channel, payload, id) {
  const { projectId, revision } = held;
  const answer = await invoke(channel, { projectId, ...payload, expectedRevision: revision });
  if (answer.ok) drafts.delete(id);
  const told = byId("constraints-told");
  await loadConstraints(projectId, changed);
  if (answer.ok) whisper(told, word("saved"), "good");
  else whisper(told, CONFLICTS.has(answer.error.code) && held.revision !== revision ? word("conflict") : spellError(answer.error), "bad");
  if (answer.ok) changed();
}
