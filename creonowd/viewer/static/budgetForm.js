// The budget as a form. What the author typed is kept when someone else has saved first.

import { budgetProfile, saveBudget } from "./budgetBar.js";
import { byId, button, fill, h } from "./dom.js";
import { errorText, number, percent, string } from "./language.js";
import { LAYERS } from "./pieces.js";
import { place } from "./place.js";
import { signal } from "./signals.js";

const LARGEST_TOTAL = 64_000;
const TOTALS = { contextWindowTokens: "window", systemPromptTokens: "system", outputReserveTokens: "reserve" };
let drafts = {};
let projectId = "";
let message = { text: () => "", tone: "" };

export function showBudgetForm(box) {
  const profile = budgetProfile();
  if (!profile) return;
  if (projectId !== place.projectId) drafts = {};
  projectId = place.projectId;
  const totals = Object.entries(TOTALS).map(([key, name]) => field(box, key, string(name), "1", profile[key]));
  fill(box, h("form", { onsubmit: (event) => save(event, box), novalidate: "" },
    h("div", { class: "fields" }, ...totals), h("div", { class: "fields shares" }, ...LAYERS.map((name) => shares(box, name, profile))),
    h("p", { id: "budget-sum", class: "faint" }), h("button", { type: "submit", id: "save-budget", class: "primary" }, string("save")),
    h("p", { id: "budget-message", class: `message ${message.tone}`, role: "alert" }, message.text())));
  sum();
}

function shares(box, name, { layers }) {
  const { ratio, minimumTokens } = layers[name];
  return h("fieldset", {}, h("legend", {}, string(name)), field(box, `${name}.ratio`, string("ratio"), "0.01", ratio),
    field(box, `${name}.minimumTokens`, string("minimum"), "1", minimumTokens));
}

function field(box, key, label, step, now) {
  const draft = drafts[key];
  const input = h("input", { id: `budget-${key}`, type: "number", min: "0", step, value: String(draft?.value ?? now), oninput: () => {
    drafts[key] = { from: drafts[key]?.from ?? now, value: input.value };
    sum();
  } });
  const moved = draft && draft.from !== now;
  return h("div", {}, h("label", {}, label, input), moved ? h("p", { class: "theirs" }, string("nowIs", number(now)), " ",
    button(string("takeTheirs"), () => {
      delete drafts[key];
      showBudgetForm(box);
    }, { class: "link" })) : null);
}

const value = (key) => Number(byId(`budget-${key}`).value);

function sum() {
  const rest = value("contextWindowTokens") - value("systemPromptTokens") - value("outputReserveTokens");
  const ratios = LAYERS.reduce((all, name) => all + value(`${name}.ratio`), 0);
  byId("budget-sum").textContent = string("budgetSum", Math.min(rest, LARGEST_TOTAL), percent(ratios));
}

async function save(event, box) {
  event.preventDefault();
  const layers = Object.fromEntries(LAYERS.map((name) => [name, { ratio: value(`${name}.ratio`), minimumTokens: value(`${name}.minimumTokens`) }]));
  const change = { layers, ...Object.fromEntries(Object.keys(TOTALS).map((key) => [key, value(key)])) };
  const answer = await saveBudget(change);
  if (answer.ok) drafts = {};
  const isConflict = answer.error?.code === "CONTEXT_BUDGET_CONFLICT";
  message = answer.ok ? { text: () => string("saved"), tone: "good" } : { text: () => (isConflict ? string("conflict") : errorText(answer.error)), tone: "bad" };
  showBudgetForm(box);
  if (answer.ok) signal("place", {});
}
