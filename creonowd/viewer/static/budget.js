// The budget, edited as a form. What is typed is kept when someone else was first.

import { LAYERS } from "./bars.js";
import { invoke } from "./rpc.js";
import { byId, fill, h } from "./dom.js";
import { whisper } from "./status.js";
import { spellError, word } from "./strings.js";

const WHOLE = { contextWindowTokens: "window", systemPromptTokens: "system", outputReserveTokens: "reserve" };
let held = { projectId: "", profile: null };
let drafts = {};
let changed = () => {};

export const profile = () => held.profile;

/** Load the budget of a project; `onChange` is called whenever another one is known. */
export async function loadBudget(projectId, onChange) {
  if (projectId !== held.projectId) drafts = {};
  changed = onChange;
  const found = await invoke("context:budget:get", { projectId });
  if (!found.ok) return whisper(byId("budget-told"), spellError(found.error), "bad");
  held = { projectId, profile: found.data };
  showBudget();
  return changed();
}

/** Load it again: somebody else has changed it. */
export const reloadBudget = () => loadBudget(held.projectId, changed);

export function showBudget() {
  if (!held.profile) return;
  const whole = Object.entries(WHOLE).map(([key, name]) => field(key, word(name), "1", held.profile[key]));
  fill(byId("budget"), h("form", { onsubmit: save, novalidate: "" },
    h("div", { class: "fields" }, ...whole), h("div", { class: "fields shares" }, ...LAYERS.map(shares)),
    h("p", { id: "budget-sum", class: "faint" }), h("button", { type: "submit", id: "save-budget" }, word("save"))));
  sum();
}

function shares(name) {
  const { ratio, minimumTokens } = held.profile.layers[name];
  return h("fieldset", {}, h("legend", {}, word(name)), field(`${name}.ratio`, word("ratio"), "0.01", ratio),
    field(`${name}.minimumTokens`, word("minimum"), "1", minimumTokens));
}

function field(key, label, step, now) {
  const draft = drafts[key];
  const input = h("input", { id: `budget-${key}`, type: "number", min: "0", step, value: String(draft?.value ?? now), oninput: () => {
    drafts[key] = { from: drafts[key]?.from ?? now, value: input.value };
    sum();
  } });
  const moved = draft && draft.from !== now;
  return h("div", {}, h("label", {}, label, input), moved ? h("p", { class: "theirs" }, word("nowIs", now), " ",
    h("button", { type: "button", class: "quiet", onclick: () => forget(key) }, word("takeTheirs"))) : null);
}

const value = (key) => Number(byId(`budget-${key}`).value);

function sum() {
  const total = value("contextWindowTokens") - value("systemPromptTokens") - value("outputReserveTokens");
  const ratios = LAYERS.reduce((all, name) => all + value(`${name}.ratio`), 0);
  byId("budget-sum").textContent = word("budgetSum", total, Math.round(100 * ratios));
}

function forget(key) {
  delete drafts[key];
  showBudget();
}

async function save(event) {
  event.preventDefault();
  const { projectId, profile: seen } = held;
  const layers = Object.fromEntries(LAYERS.map((name) => [name, { ratio: value(`${name}.ratio`), minimumTokens: value(`${name}.minimumTokens`) }]));
  const next = { version: seen.version, layers };
  for (const key of Object.keys(WHOLE)) next[key] = value(key);
  const answer = await invoke("context:budget:update", { projectId, profile: next });
  if (answer.ok) drafts = {};
  await loadBudget(projectId, changed);
  if (answer.ok) return whisper(byId("budget-told"), word("saved"), "good");
  const isConflict = answer.error.code === "CONTEXT_BUDGET_CONFLICT";
  return whisper(byId("budget-told"), isConflict ? word("conflict") : spellError(answer.error), "bad");
}
