// The budget as a form. What the author typed is kept when someone else has saved first.

import { LAYERS } from "./bars.js";
import { byId, fill, h } from "./dom.js";
import { invoke } from "./rpc.js";
import { showMessage } from "./status.js";
import { errorText, string } from "./strings.js";

const LARGEST_TOTAL = 64_000;
const TOTALS = { contextWindowTokens: "window", systemPromptTokens: "system", outputReserveTokens: "reserve" };
let loaded = { projectId: "", profile: null };
let drafts = {};
let changed = () => {};

export const profile = () => loaded.profile;

/** Load the budget of a project; calls `onChange` after every load. */
export async function loadBudget(projectId, onChange) {
  if (projectId !== loaded.projectId) drafts = {};
  changed = onChange;
  const found = await invoke("context:budget:get", { projectId });
  if (!found.ok) return showMessage(byId("budget-message"), errorText(found.error), "bad");
  loaded = { projectId, profile: found.data };
  showBudget();
  return changed();
}

/** Load it again after someone else has changed it. */
export const reloadBudget = () => loadBudget(loaded.projectId, changed);

export function showBudget() {
  if (!loaded.profile) return;
  const totals = Object.entries(TOTALS).map(([key, name]) => field(key, string(name), "1", loaded.profile[key]));
  fill(byId("budget"), h("form", { onsubmit: save, novalidate: "" },
    h("div", { class: "fields" }, ...totals), h("div", { class: "fields shares" }, ...LAYERS.map(shares)),
    h("p", { id: "budget-sum", class: "faint" }), h("button", { type: "submit", id: "save-budget" }, string("save"))));
  sum();
}

function shares(name) {
  const { ratio, minimumTokens } = loaded.profile.layers[name];
  return h("fieldset", {}, h("legend", {}, string(name)), field(`${name}.ratio`, string("ratio"), "0.01", ratio),
    field(`${name}.minimumTokens`, string("minimum"), "1", minimumTokens));
}

function field(key, label, step, now) {
  const draft = drafts[key];
  const input = h("input", { id: `budget-${key}`, type: "number", min: "0", step, value: String(draft?.value ?? now), oninput: () => {
    drafts[key] = { from: drafts[key]?.from ?? now, value: input.value };
    sum();
  } });
  const moved = draft && draft.from !== now;
  return h("div", {}, h("label", {}, label, input), moved ? h("p", { class: "theirs" }, string("nowIs", now), " ",
    h("button", { type: "button", class: "quiet", onclick: () => discard(key) }, string("takeTheirs"))) : null);
}

const value = (key) => Number(byId(`budget-${key}`).value);

function sum() {
  const remainder = value("contextWindowTokens") - value("systemPromptTokens") - value("outputReserveTokens");
  const total = Math.min(remainder, LARGEST_TOTAL);
  const ratios = LAYERS.reduce((all, name) => all + value(`${name}.ratio`), 0);
  byId("budget-sum").textContent = string("budgetSum", total, Math.round(100 * ratios));
}

function discard(key) {
  delete drafts[key];
  showBudget();
}

async function save(event) {
  event.preventDefault();
  const { projectId, profile: seen } = loaded;
  const layers = Object.fromEntries(LAYERS.map((name) => [name, { ratio: value(`${name}.ratio`), minimumTokens: value(`${name}.minimumTokens`) }]));
  const next = { version: seen.version, layers };
  for (const key of Object.keys(TOTALS)) next[key] = value(key);
  const answer = await invoke("context:budget:update", { projectId, profile: next });
  if (answer.ok) drafts = {};
  await loadBudget(projectId, changed);
  if (answer.ok) return showMessage(byId("budget-message"), string("saved"), "good");
  const isConflict = answer.error.code === "CONTEXT_BUDGET_CONFLICT";
  return showMessage(byId("budget-message"), isConflict ? string("conflict") : errorText(answer.error), "bad");
}
