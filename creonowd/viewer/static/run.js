// The skill, the author's instruction, and the run: the answer grows at the caret; then the author takes it, asks again or forgets it.

import { byId, button, fill, h } from "./dom.js";
import { compareFrom, inspection, refresh, untilIdle } from "./inspection.js";
import { errorText, string } from "./language.js";
import { focusText, isAnswerInView, removeAnswer, revealAnswer, showAnswer, takeAnswer } from "./manuscript.js";
import { openDocument, sendTyped } from "./openDocument.js";
import { GENERAL, go, place, whereabouts } from "./place.js";
import { invoke, isConnected, on } from "./rpc.js";
import { onSignal, signal } from "./signals.js";
import { toast } from "./undo.js";

const SHOWN = 8;
let skills = [];
const state = { runId: null, attempt: 1, text: "", from: 0, to: 0, documentId: "", done: null, failure: null };
/** Decisions on runs reach the daemon one after the other. */
let deciding = Promise.resolve();

/** Load the skills of the project. */
export async function loadSkills() {
  const answer = await invoke("viewer:skills", { projectId: place.projectId });
  skills = answer.ok ? answer.data.items : [];
  showSkills();
}

/** List the skills in the language of the page, keeping the one that is chosen. */
function showSkills() {
  if (!skills.length) return;
  const option = (one) => h("option", { value: one.id, disabled: !one.valid }, one.valid ? one.name : string("invalidSkill", one.name || one.id));
  fill(byId("skill"), ...skills.map(option), h("option", { value: GENERAL }, string("general")));
  const ids = [place.skillId, "builtin:continue", GENERAL];
  const chosen = ids.find((id) => id === GENERAL || skills.some((one) => one.id === id && one.valid));
  place.skillId = chosen;
  byId("skill").value = chosen;
}

/** Return what the page calls a skill. */
export const skillName = (id) => skills.find((one) => one.id === id)?.name ?? "";

/** Take over what the author says to the AI; the field is as high as its text, within limits. */
function instruct(text) {
  go({ instruction: text });
  const field = byId("input");
  field.style.height = "auto";
  field.style.height = `${Math.min(160, field.scrollHeight + 2)}px`;
}

/** Run the chosen skill; `named` are broken rules to name in the instruction. */
export async function run(named = []) {
  if (byId("run").disabled) return;
  await drop();
  await sendTyped();
  const { documentId } = place;
  Object.assign(state, { runId: `run_${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`, attempt: 1, text: "", documentId, ...spot(), failure: null });
  enableRun();
  show();
  revealAnswer();
  const input = [place.instruction, ...(named.length ? [string("againInput", named.join("\n"))] : [])].filter(Boolean).join("\n\n");
  const { runId } = state;
  const answer = await invoke("ai:skill:run", { ...whereabouts(), ...(input ? { input } : {}), runId, stream: true });
  if (state.runId !== runId) return;
  state.runId = null;
  if (answer.ok) finish(runId, answer.data);
  else Object.assign(state, { failure: answer.error, text: "" });
  enableRun();
  show();
  signal("ran");
}

/** Return what the answer stands for: the selection, or the caret. */
function spot() {
  const { cursorPosition, selection } = whereabouts();
  return { from: selection?.from ?? cursorPosition, to: cursorPosition };
}

async function finish(runId, data) {
  Object.assign(state, { text: data.output, done: { runId, ...data } });
  await untilIdle();
  if (inspection.real) compareFrom(inspection.real, "run");
  refresh();
}

const brokenPlaces = () => state.done?.verdict.violations ?? [];
const brokenRules = () => [...new Set(brokenPlaces().map((one) => one.constraint))];

function show() {
  const { runId, text, from, to, done, failure } = state;
  const mustReveal = isAnswerInView();
  const marks = brokenPlaces().map((one) => ({ from: one.from, to: one.to, constraint: one.constraint }));
  showAnswer(runId || done ? { text, from, to, runId: done?.runId, broken: marks } : null);
  const bar = byId("run-bar");
  bar.hidden = !(runId || done || failure);
  if (failure) fill(bar, ...failureParts(failure));
  else if (runId) fill(bar, h("p", {}, string("running")));
  else if (done) fill(bar, ...verdict(done), h("p", { class: "row" }, ...choices()));
  if (mustReveal) revealAnswer();
}

function failureParts(error) {
  const shut = button(string("close"), forget, { class: "small" });
  if (error.code === "CANCELED") return [h("p", { class: "row" }, string("stopped"), button(string("again"), () => run(), { class: "small" }), shut)];
  return [h("p", { class: "bad" }, errorText(error)), h("p", { class: "row" }, button(string("again"), () => run(), { class: "small primary" }),
    error.code.startsWith("AI_") ? button(string("openAi"), () => signal("drawer", "ai-box"), { class: "small" }) : null, shut)];
}

/** Show which rules the answer breaks, and which nobody could check. */
function verdict({ verdict: { violations, unchecked }, provider, usage }) {
  const rules = brokenRules();
  const read = usage.inputTokens === undefined ? "" : string("readFromCache", usage.cacheReadTokens ?? 0, usage.inputTokens);
  return [
    provider === "fake" ? h("p", { class: "warn-text" }, string("fake"), " ", button(string("openAi"), () => signal("drawer", "ai-box"), { class: "link" })) : null,
    h("p", { class: violations.length ? "bad" : "good", id: "verdict" }, violations.length ? string("violations", rules.length) : string("passed"),
      unchecked.length ? ` · ${string("unchecked", unchecked.length)}` : ""),
    rules.length ? h("ul", { class: "broken" }, ...rules.slice(0, SHOWN).map((rule) => h("li", {}, rule, ...quotesOf(rule)))) : null,
    unchecked.length ? h("details", {}, h("summary", {}, string("uncheckedWhy")), h("ul", {}, ...unchecked.slice(0, 20).map((one) => h("li", {}, `${one.constraint} — ${one.reason}`)))) : null,
    read ? h("p", { class: "faint" }, read) : null,
  ];
}

const quotesOf = (rule) => [...new Set(brokenPlaces().filter((one) => one.constraint === rule && one.quote).map((one) => one.quote))].flatMap((quote) => [" ", h("mark", {}, quote)]);

function choices() {
  const rules = brokenRules();
  return [
    button(string("take"), take, { class: "primary", id: "take" }),
    button(string(rules.length ? "againNamed" : "again"), () => run(rules), { id: "again" }),
    button(string("forget"), forget, { id: "forget" }),
  ];
}

/** Write the answer into the text at once, so that what is done next finds it there. */
function take() {
  const { done, text, documentId } = state;
  Object.assign(state, { done: null, text: "", failure: null });
  takeAnswer(text, done.runId);
  show();
  toast(string("taken"), () => removeTaken(done.runId, documentId));
}

/** Take an answer out of its text again. */
async function removeTaken(runId, documentId) {
  if (documentId !== place.documentId) await openDocument(documentId);
  if (removeAnswer(runId)) return deciding;
  decide({ runId, isTaken: false });
  await deciding;
  toast(string("untakenOnly"));
  return false;
}

/** Only what is taken is remembered, for as long as it is. */
function decide({ runId, isTaken }) {
  deciding = deciding.then(async () => {
    const answer = await invoke(isTaken ? "ai:run:accept" : "ai:run:discard", { projectId: place.projectId, runId });
    if (!answer.ok) toast(errorText(answer.error));
    refresh();
  });
}

/** Drop the answer, so that no later prompt remembers it; returns what was dropped. */
async function drop() {
  const { done, text, from, to, documentId } = state;
  Object.assign(state, { done: null, text: "", failure: null });
  show();
  if (done) await invoke("ai:run:discard", { projectId: place.projectId, runId: done.runId });
  return done && { done, text, from, to, documentId };
}

/** Drop the answer, and offer to show it again. */
async function forget() {
  const hadFocus = byId("run-bar").contains(document.activeElement);
  const dropping = drop();
  if (hadFocus) focusText();
  const dropped = await dropping;
  if (dropped) toast(string("forgotten"), () => showAgain(dropped));
}

async function showAgain(dropped) {
  if (dropped.documentId !== place.documentId) await openDocument(dropped.documentId);
  if (state.runId !== null) return false;
  await drop();
  Object.assign(state, dropped);
  show();
  revealAnswer();
  return true;
}

function showDelta(event) {
  if (event.runId !== state.runId) return;
  if (event.attempt !== state.attempt) state.text = "";
  state.attempt = event.attempt;
  state.text += event.delta;
  showAnswer({ text: state.text, from: state.from, to: state.to });
}

/** Enable what can be used now. */
export function enableRun() {
  const isRunning = state.runId !== null;
  byId("run").disabled = isRunning || !isConnected() || !place.projectId || !place.documentId;
  byId("cancel").hidden = !isRunning;
}

export function listenToRun() {
  byId("skill").addEventListener("change", (event) => go({ skillId: event.target.value }));
  byId("input").addEventListener("input", (event) => instruct(event.target.value));
  onSignal("instruction", (text) => {
    byId("input").value = text;
    instruct(text);
  });
  onSignal(["skills", "language"], showSkills);
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  byId("cancel").addEventListener("click", () => invoke("ai:skill:cancel", { runId: state.runId }));
  on("ai:skill:stream", showDelta);
  onSignal("language", show);
  onSignal("document", forget);
  onSignal("taken", decide);
  onSignal(["place", "connection"], enableRun);
}
