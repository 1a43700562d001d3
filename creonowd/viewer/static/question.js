// "Why doesn't it know …?": one field, completion over all that has a name, four answers and what can be done.

import { subjects } from "./bookMap.js";
import { previewOf, raiseBudget } from "./budgetBar.js";
import { byId, button, fill, h, withBars } from "./dom.js";
import { canSetMode, setMode } from "./eye.js";
import { explain } from "./inspection.js";
import { errorText, string } from "./language.js";
import { readWhole, setPin } from "./pieceList.js";
import { GENERAL, go } from "./place.js";
import { signal, when } from "./signals.js";

const SHOWN = 8;
const state = { items: [], chosen: -1, about: "", answer: null };

/** Put the caret into the field. */
export function askField() {
  signal("pane", "ask");
  byId("question").focus();
  byId("question").select();
}

/** Ask about something, and show the answer below the field. */
export async function ask(about, shownAs) {
  if (!about.trim()) return close();
  signal("pane", "ask");
  byId("question").value = shownAs ?? subjects().find((one) => one.sourceRef === about)?.name ?? about;
  hideCompletions();
  state.about = about;
  return again();
}

/** Ask, perhaps the same again because the prompt has changed. */
async function again() {
  const { about } = state;
  if (!about) return;
  const answer = await explain(about);
  if (state.about !== about || answer.error?.code === "DISCONNECTED") return;
  state.answer = answer;
  showAnswer();
}

function close() {
  state.about = "";
  byId("answer").hidden = true;
  fill(byId("answer"));
  hideCompletions();
}

function showAnswer() {
  const box = byId("answer");
  const { ok, data, error } = state.answer;
  box.hidden = false;
  const shut = button("×", close, { class: "close", "aria-label": string("close") });
  if (!ok) return fill(box, shut, h("p", {}, errorText(error)));
  box.dataset.verdict = data.verdict;
  box.dataset.about = data.about;
  return fill(box, shut, ...verdict(data), data.others?.length ? others(data.others) : null);
}

function verdict(data) {
  const { verdict: kind, sentence, quote, ahead, rank, among, taken, missingTokens, problem, line } = data;
  const place = rank && among ? h("p", { class: "faint" }, string("rank", rank, among), taken === undefined ? "" : ` ${string("rankKept", taken)}`,
    missingTokens ? ` ${string("missing", missingTokens)}` : "") : null;
  return [
    h("h3", {}, h("i", { class: `mark ${MARK[kind]}`, "aria-hidden": "true" }), string(`verdict ${kind}`)),
    h("p", { class: "answer-sentence" }, sentence),
    quote ? h("blockquote", {}, ...withBars(quote)) : null,
    place,
    problem ? h("p", { class: "bad" }, problem, line ? ` (${string("line", line)})` : "") : null,
    ahead?.length ? h("details", { class: "ahead" }, h("summary", {}, string("ahead")), h("ol", {}, ...ahead.map((one) =>
      h("li", {}, button(one.name || one.sourceRef, () => signal("source", one.sourceRef), { class: "link" }), h("span", { class: "number" }, string("tokens", one.tokens)))))) : null,
    h("p", { class: "row remedies" }, ...remedies(data)),
  ];
}

const MARK = { in: "seen", left_out: "left_out", never_considered: "never", not_in_project: "none" };

function others(found) {
  return h("div", { class: "others" }, h("p", { class: "faint" }, string("others")), h("ul", {}, ...found.map((one) =>
    h("li", {}, h("i", { class: `mark ${MARK[one.verdict]}`, "aria-hidden": "true" }), button(one.name, () => ask(one.sourceRef ?? one.name, one.name), { class: "link" }),
      h("span", { class: "faint" }, string(`verdict ${one.verdict}`))))));
}

/** What can be done about an answer; the first is the best. */
function remedies(data) {
  const made = (data.remedies ?? []).map((one) => remedy(one, data)).filter(Boolean);
  if (data.verdict === "in") made.unshift(button(string("jumpToIt"), () => jump(data), { class: "primary" }));
  made.forEach((one, at) => one.classList.toggle("primary", at === 0));
  return made;
}

/** Go to where the prompt says it or, where that is not known, to the piece that has it. */
function jump({ places, sourceRef }) {
  if (places?.length) return signal("prompt-at", places[0].from);
  return signal("source", sourceRef);
}

function remedy({ do: what, sourceRef, totalBudgetTokens, path, inject, line, skillId, documentId, position, name }, answer) {
  const make = REMEDIES[what];
  return make ? make({ sourceRef, totalBudgetTokens, path, inject, line, skillId, documentId, position, name: name ?? answer.name }) : null;
}

const later = (work) => async () => {
  await work();
  again();
};

const REMEDIES = {
  pin: ({ sourceRef, name }) => button(string("pin"), () => setPin({ sourceRef, name, content: "" }, true), previewOf(sourceRef)),
  raise_budget: ({ totalBudgetTokens }) => button(string("makeRoomTo", totalBudgetTokens), later(() => raiseBudget(totalBudgetTokens))),
  set_inject: ({ path, inject, name }) => (canSetMode()
    ? button(string("setInject", string(`inject ${inject}`)), later(() => setMode({ sourceRef: path, name }, inject)))
    : h("span", {}, string("writeInject", path, inject))),
  fix_file: ({ path, line }) => h("span", {}, string("fixFile", path, line ?? 1)),
  change_skill: ({ skillId }) => button(skillId ? string("useSkill", skillId) : string("useGeneral"), () => {
    go({ skillId: skillId ?? GENERAL });
    signal("skills");
  }),
  move_cursor: ({ documentId, position }) => button(string("goThere"), () => signal("open", { documentId, cursor: position })),
  widen_window: () => button(string("readWhole"), readWhole),
  wait: () => button(string("askAgain"), again),
  write_down: ({ name }) => button(string("writeDown"), () => signal("write-down", { kind: "person", name })),
  include_file: ({ path }) => h("span", {}, string("includeFile", path)),
  mention: ({ name }) => h("span", {}, string("mentionIt", name)),
};

/** Offer what begins with the words typed so far, then what holds them. */
function complete() {
  const sought = byId("question").value.trim().toLowerCase();
  const names = (one) => [one.name, ...(one.aliases ?? [])].map((name) => name.toLowerCase());
  const rank = (one) => (names(one).some((name) => name.startsWith(sought)) ? 0 : names(one).some((name) => name.includes(sought)) ? 1 : 2);
  state.items = sought ? subjects().map((one) => [rank(one), one]).filter(([found]) => found < 2).sort(([one], [two]) => one - two).map(([, one]) => one).slice(0, SHOWN) : [];
  state.chosen = -1;
  showCompletions();
}

function showCompletions() {
  const list = byId("completions");
  list.hidden = !state.items.length;
  byId("question").setAttribute("aria-expanded", String(!list.hidden));
  byId("question").setAttribute("aria-activedescendant", state.chosen >= 0 ? `completion-${state.chosen}` : "");
  fill(list, ...state.items.map((one, at) => h("li", { role: "option", id: `completion-${at}`, "aria-selected": String(at === state.chosen),
    onpointerdown: (event) => {
      event.preventDefault();
      choose(one);
    } }, h("span", {}, one.name), h("span", { class: "faint" }, string(`kind ${one.kind}`)))));
}

function hideCompletions() {
  state.items = [];
  state.chosen = -1;
  showCompletions();
}

const choose = (one) => ask(one.sourceRef, one.name);

function pressed(event) {
  const count = state.items.length;
  if (event.isComposing) return;
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
    event.preventDefault();
    state.chosen = (state.chosen + (event.key === "ArrowDown" ? 1 : count + (state.chosen < 0 ? 0 : -1))) % count;
    showCompletions();
  } else if (event.key === "Escape") {
    if (count) hideCompletions();
    else close();
  }
}

function submitted(event) {
  event.preventDefault();
  const chosen = state.items[state.chosen];
  if (chosen) choose(chosen);
  else ask(byId("question").value);
}

export function listenToQuestion() {
  byId("question").addEventListener("input", complete);
  byId("question").addEventListener("keydown", pressed);
  byId("question").addEventListener("blur", hideCompletions);
  byId("question-form").addEventListener("submit", submitted);
  when("ask", (about) => ask(about));
  when("language", again);
  when("inspected", again);
  when("document", close);
}
