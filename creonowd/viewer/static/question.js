// "Why doesn't it know …?": one field, completion over all that has a name, four answers and what can be done.

import { stateOf, subjects, titleOf } from "./bookMap.js";
import { previewOf, profileTotal, raiseBudget, withPin, withSkill, withTotal } from "./budget.js";
import { setMode } from "./card.js";
import { byId, button, fill, fillChanged, h, withBars } from "./dom.js";
import { explain, inspection } from "./inspection.js";
import { errorText, listing, sentenceGap, string } from "./language.js";
import { readWhole, setPin, useSkill } from "./pieceList.js";
import { nameOf, pieceOf } from "./pieces.js";
import { GENERAL, note, place } from "./place.js";
import { skillName } from "./run.js";
import { onSignal, signal } from "./signals.js";
import { toast } from "./undo.js";

const SHOWN = 8;
const HINTS = 6;
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
  return resume(about, shownAs);
}

/** Ask without going to the field, as after a reload. */
export async function resume(about, shownAs) {
  const known = subjects().find((one) => one.sourceRef === about);
  byId("question").value = shownAs ?? (known ? nameOf(known) : about);
  hideCompletions();
  state.about = about;
  note({ about });
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
  note({ about: "" });
  byId("answer").hidden = true;
  fillChanged(byId("answer"), null, () => []);
  hideCompletions();
}

function showAnswer() {
  const box = byId("answer");
  const { ok, data, error } = state.answer;
  box.hidden = false;
  box.dataset.verdict = data?.verdict ?? "";
  box.dataset.about = data?.about ?? "";
  const contents = () => (ok ? [...verdict(data), data.others?.length ? others(data.others) : null] : [h("p", {}, errorText(error))]);
  const isOpen = box.querySelector(".ahead")?.open;
  fillChanged(box, state.answer, () => [button("×", close, { class: "close", "aria-label": string("close") }), ...contents()]);
  if (isOpen && box.querySelector(".ahead")) box.querySelector(".ahead").open = true;
}

function verdict(data) {
  const { verdict: kind, sentence, quote, problem } = data;
  return [
    h("h3", {}, h("i", { class: `mark ${MARK[kind]}`, "aria-hidden": "true" }), string(`verdict ${kind}`)),
    h("p", { class: "answer-sentence" }, sentence),
    quote && !/^[[{]/.test(quote) ? h("blockquote", {}, ...withBars(quote)) : null,
    rankOf(data),
    problem ? h("p", { class: "bad" }, problem) : null,
    aheadOf(data),
    h("p", { class: "row remedies" }, ...remedies(data)),
  ];
}

/** Return the rank, unless the sentence has it. */
function rankOf({ cause, rank, among, taken }) {
  if (!rank || cause === "over_budget") return null;
  return h("p", { class: "faint" }, string("rank", rank, among), ...(taken ? [sentenceGap(), string("rankKept", taken)] : []));
}

/** List what came before it; the first names stand in the line that opens the list. */
function aheadOf({ ahead = [], taken = 0 }) {
  if (!ahead.length) return null;
  const names = ahead.map((one) => one.name || one.sourceRef);
  const first = names.length > 2 ? [...names.slice(0, 2), string("andMore", taken - 2)] : names;
  return h("details", { class: "ahead" }, h("summary", {}, string("ahead", listing(first))), h("ol", {}, ...ahead.map((one, at) =>
    h("li", {}, button(names[at], () => signal("source", one.sourceRef), { class: "link" }), h("span", { class: "number" }, string("tokens", one.tokens))))));
}

const MARK = { in: "seen", left_out: "left_out", never_considered: "never", not_in_project: "none" };

function others(found) {
  return h("div", { class: "others" }, h("p", { class: "faint" }, string("others")), h("ul", {}, ...found.map((one) =>
    h("li", {}, h("i", { class: `mark ${MARK[one.verdict]}`, "aria-hidden": "true" }), button(one.kind === "words" ? string("wordsIn", placeName(one)) : one.name, () => ask(one.sourceRef ?? one.name, one.name), { class: "link" }),
      h("span", { class: "faint" }, string(`verdict ${one.verdict}`))))));
}

/** Return what an author calls the place where words stand. */
function placeName({ documentId, sourceRef }) {
  const piece = !documentId && inspection.shown && pieceOf(inspection.shown.result, sourceRef);
  return piece ? nameOf(piece) : titleOf((documentId ?? sourceRef).replace(/#.*$/, ""));
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

/** Make the button of a remedy; what it does not say itself is taken from the answer. */
function remedy({ do: what, ...details }, { name, missingTokens }) {
  return REMEDIES[what]?.({ name, missingTokens, ...details }) ?? null;
}

const later = (work) => async () => {
  await work();
  again();
};

const REMEDIES = {
  pin: ({ sourceRef, name }) => button(string("pin"), () => setPin({ sourceRef, name, content: "" }, true), previewOf(withPin(sourceRef))),
  raise_budget: ({ totalBudgetTokens, missingTokens }) => (totalBudgetTokens
    ? button(string("makeRoomTo", missingTokens ?? totalBudgetTokens - profileTotal(), totalBudgetTokens), later(() => raiseBudget(totalBudgetTokens)), previewOf(withTotal(totalBudgetTokens)))
    : button(string("openBudget"), () => signal("drawer", "budget-box"))),
  set_inject: ({ path, inject, name }) => button(string("setInject", string(`inject ${inject}`)), later(() => setMode({ sourceRef: path, name }, inject))),
  fix_file: ({ path, line }) => button(string(line ? "fixFileAt" : "fixFile", line), () => signal("fix", { path, line })),
  change_skill: ({ skillId }) => button(skillId ? string("useSkill", skillName(skillId) || skillId) : string("useGeneral"),
    () => useSkill(skillId ?? GENERAL, string("skillNow", skillId ? skillName(skillId) || skillId : string("general"))), previewOf(withSkill(skillId ?? null))),
  move_cursor: ({ documentId, position }) => button(string("goThere"), () => signal("open", { documentId, cursor: position })),
  widen_window: () => button(string("readWhole"), readWhole, previewOf(withSkill(null))),
  wait: () => button(string("askAgain"), again),
  write_down: ({ name }) => button(string("writeDown"), () => signal("write-down", { kind: "person", name })),
  include_file: ({ path, ignoreFile, line }) => (ignoreFile
    ? button(string("allowFile", path, line, ignoreFile), () => signal("fix", { path: ignoreFile, line }))
    : h("span", {}, string("includeFile", path))),
  mention: ({ name }) => button(string("mentionIt", name), () => mention(name)),
};

/** Name something in the instruction, which is searched with as well. */
function mention(name) {
  const before = place.instruction;
  signal("instruction", [before, name].filter(Boolean).join(" "));
  toast(string("mentioned", name), () => signal("instruction", before));
}

/** Offer what an author may miss: people and notes that the model does not have, then the others. */
function showHints() {
  const named = subjects().filter((one) => one.inject);
  const offered = [...named.filter((one) => stateOf(one.sourceRef) !== "seen"), ...named.filter((one) => stateOf(one.sourceRef) === "seen")].slice(0, HINTS);
  fill(byId("hints"), h("p", {}, string("askHint")), h("p", { class: "row" }, ...offered.map((one) => button(nameOf(one), () => choose(one), { class: "small" }))));
}

/** Offer what begins with the words typed so far, then what has a word that does, then what holds them. */
function complete() {
  const searchText = byId("question").value.trim().toLowerCase();
  const names = (one) => [nameOf(one), one.name, ...(one.aliases ?? [])].map((name) => name.toLowerCase());
  const ways = [(name) => name.startsWith(searchText), (name) => name.includes(` ${searchText}`), (name) => name.includes(searchText)];
  const rank = (one) => ways.findIndex((way) => names(one).some(way));
  state.items = searchText ? subjects().map((one) => [rank(one), one]).filter(([found]) => found >= 0).sort(([one], [two]) => one - two).map(([, one]) => one).slice(0, SHOWN) : [];
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
    } }, h("span", {}, nameOf(one)), h("span", { class: "faint" }, string(`kind ${one.kind}`)))));
}

function hideCompletions() {
  state.items = [];
  state.chosen = -1;
  showCompletions();
}

const choose = (one) => ask(one.sourceRef, nameOf(one));

function onKey(event) {
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

function onSubmit(event) {
  event.preventDefault();
  const chosen = state.items[state.chosen];
  if (chosen) choose(chosen);
  else ask(byId("question").value);
}

export function listenToQuestion() {
  byId("question").addEventListener("input", complete);
  byId("question").addEventListener("keydown", onKey);
  byId("question").addEventListener("blur", hideCompletions);
  byId("question-form").addEventListener("submit", onSubmit);
  onSignal("ask", (about) => ask(about));
  onSignal(["inspected", "language"], () => {
    again();
    showHints();
  });
  onSignal("document", close);
}
