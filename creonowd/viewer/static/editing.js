// Constraints and the budget, with what happens when someone else was first.

import { invoke } from "./creonow.js";
import { byId, capped, fill, h } from "./dom.js";
import { LAYERS } from "./layers.js";
import { word } from "./words.js";

const SHOWN = 50;
const CONFLICTS = new Set(["CONSTRAINT_CONFLICT", "CONSTRAINT_NOT_FOUND", "CONTEXT_BUDGET_CONFLICT"]);

/** Edit both for a project; `changed` is called after every write, `tell` shows a sentence. */
export function editor(projectId, changed, tell) {
  async function write(channel, payload, reload) {
    const answer = await invoke(channel, { projectId, ...payload });
    if (answer.ok) changed();
    else tell(CONFLICTS.has(answer.error.code) ? word("conflict") : `${answer.error.code}: ${answer.error.message}`);
    await reload();
    return answer.ok;
  }

  async function constraints() {
    const listed = await invoke("constraints:list", { projectId });
    if (!listed.ok) return fill(byId("constraints"), h("p", { class: "warn" }, `${listed.error.code}: ${listed.error.message}`));
    const { constraints: items, revision } = listed.data;
    const expectedRevision = revision;
    const text = h("input", { "aria-label": word("newConstraint"), placeholder: word("newConstraint"), id: "new-constraint" });
    const add = h("form", { class: "item", onsubmit: (event) => {
      event.preventDefault();
      if (text.value.trim()) write("constraints:create", { constraint: { text: text.value }, expectedRevision }, constraints);
    } }, text, h("button", { type: "submit" }, word("add")));
    const row = (item) => {
      const field = h("input", { "aria-label": item.id, value: item.text, disabled: item.source === "kg" });
      const save = () => write("constraints:update", { constraintId: item.id, patch: { text: field.value }, expectedRevision }, constraints);
      const remove = () => write("constraints:delete", { constraintId: item.id, expectedRevision }, constraints);
      const locked = item.source === "kg";
      return h("div", { class: "item" }, field, h("button", { type: "button", onclick: save, disabled: locked }, word("save")),
        h("button", { type: "button", onclick: remove, disabled: locked }, word("remove")));
    };
    return fill(byId("constraints"), capped(items, SHOWN, word("showAll"), row), add);
  }

  async function budget() {
    const found = await invoke("context:budget:get", { projectId });
    if (!found.ok) return;
    const profile = found.data;
    const inputs = {
      contextWindowTokens: number(word("window"), profile.contextWindowTokens),
      systemPromptTokens: number(word("system"), profile.systemPromptTokens),
      outputReserveTokens: number(word("reserve"), profile.outputReserveTokens),
    };
    const shares = Object.fromEntries(LAYERS.map((name) => [name, {
      ratio: number(`${word(name)} ${word("ratio")}`, profile.layers[name].ratio, "0.01"),
      minimumTokens: number(`${word(name)} ${word("minimum")}`, profile.layers[name].minimumTokens),
    }]));
    const value = (made) => Number(made.input.value);
    const save = async (event) => {
      event.preventDefault();
      const next = { version: profile.version, layers: {} };
      for (const [name, made] of Object.entries(inputs)) next[name] = value(made);
      for (const [name, pair] of Object.entries(shares)) next.layers[name] = { ratio: value(pair.ratio), minimumTokens: value(pair.minimumTokens) };
      if (await write("context:budget:update", { profile: next }, budget)) tell(word("saved"));
    };
    fill(byId("budget"), h("form", { onsubmit: save },
      h("div", { class: "fields" }, ...Object.values(inputs).map((made) => made.label), ...Object.values(shares).flatMap((pair) => [pair.ratio.label, pair.minimumTokens.label])),
      h("button", { type: "submit", id: "save-budget" }, word("save")), h("span", { class: "faint" }, `  v${profile.version} · ${profile.totalBudgetTokens} tokens`)));
  }

  return { constraints, budget };
}

function number(name, value, step = "1") {
  const input = h("input", { type: "number", min: "0", step, value: String(value) });
  return { input, label: h("label", {}, name, input) };
}
