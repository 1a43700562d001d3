// The budget: one bar of what each part takes and what is held free, what would be with another, and the form that changes it.

import { subjectOf } from "./bookMap.js";
import { byId, button, fill, h } from "./dom.js";
import { inspection, isTooLarge, previewResult, setWhatIf } from "./inspection.js";
import { errorText, listing, number, percent, string } from "./language.js";
import { isIn, LAYERS, nameOf, piecesOf } from "./pieces.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { onSignal, signal } from "./signals.js";
import { toast } from "./undo.js";

const LARGEST_TOTAL = 64_000;
const SMALLEST_TOTAL = 100;
const KEY_STEP = 50;
const HOVER_MS = 120;
const EDGES = [["settings", "retrieved"], ["retrieved", "immediate"]];
const ORDER = ["fixed", ...LAYERS];
const TOTALS = { contextWindowTokens: "window", systemPromptTokens: "system", outputReserveTokens: "reserve" };

let profile = null;
let shownPreview = null;
let asked = 0;
let drafts = {};
let draftsOf = "";
let message = { text: () => "", tone: "" };

export const budgetProfile = () => profile;

/** Return the total of the profile that is shown; a prompt may have less, where a model counts more than we do. */
export const profileTotal = () => inspection.shown.request.whatIf?.profile?.totalBudgetTokens ?? profile.totalBudgetTokens;

/** Load the budget of the project. */
export async function loadBudget() {
  const found = await invoke("context:budget:get", { projectId: place.projectId });
  if (found.ok) profile = found.data;
  signal("budget", profile);
  showBar();
}

/** Change the budget for good; returns the daemon's answer. */
export async function saveBudget(change) {
  const answer = await invoke("context:budget:update", { projectId: place.projectId, profile: { version: profile.version, ...change } });
  await loadBudget();
  return answer;
}

/** Return what a budget is made of, so that it can be put back. */
const contentsOf = ({ contextWindowTokens, systemPromptTokens, outputReserveTokens, layers }) => ({ contextWindowTokens, systemPromptTokens, outputReserveTokens, layers });

/** Raise the total to this number of tokens, and offer to undo that. The total is what the prompt needs, so another's change of
    the budget that came first is no reason to ask again. */
export async function raiseBudget(total) {
  let before = contentsOf(profile);
  let answer = await saveBudget(windowFor(total));
  if (isConflict(answer)) {
    before = contentsOf(profile);
    answer = await saveBudget(windowFor(total));
  }
  if (!answer.ok) return toast(errorText(answer.error));
  signal("place", {});
  return toast(string("budgetRaised", total), () => putBack(before));
}

const isConflict = ({ error }) => error?.code === "CONTEXT_BUDGET_CONFLICT";

/** Undo a change of the budget. */
async function putBack(before) {
  await saveBudget(before);
  signal("place", {});
}

/** Return the window that leaves `total` tokens for the prompt. */
const windowFor = (total) => ({ contextWindowTokens: total + profile.systemPromptTokens + profile.outputReserveTokens });

/** Show the bar of what is, of a what-if, or of a prompt that cannot be made. */
export function showBar() {
  const box = byId("bar");
  if (isTooLarge()) return inspection.failure.details.tokens ? showOverflow(box, inspection.failure.details) : showLimit(box, inspection.failure.details);
  if (!inspection.shown) return fill(box);
  const { result } = inspection.shown;
  const total = result.totals.budgetTokens;
  const sizes = sizesOf(result);
  const bar = h("div", { class: "bar", role: "group", "aria-label": string("budgetBar") },
    ...ORDER.map((name) => part(name, sizes[name], total)),
    ...holds(result, total), ...handles(sizes, total));
  fill(box, head(result, total), bar, shownPreview ? previewBar() : null, legend(sizes, result), whatIfRow());
}

function head(result, total) {
  const { tokenCount } = result.totals;
  const counted = result.countKind === "bound" ? "budgetAtMost" : "budgetUsed";
  return h("p", { class: "bar-head" }, h("strong", { id: "budget-total" }, string(counted, tokenCount, total)));
}

const sizesOf = ({ layersDetail, totals }) => ({ fixed: totals.fixedTokens, ...Object.fromEntries(LAYERS.map((name) => [name, layersDetail[name].tokens])) });

function part(name, tokens, total) {
  const made = h("button", { type: "button", class: `part ${name}`, "data-part": name, title: `${string(name)} · ${string("tokens", tokens)}`,
    "aria-label": `${string(name)}: ${string("tokens", tokens)}`, onclick: () => signal("layer", name), disabled: name === "fixed" || !tokens });
  made.style.flexGrow = String(tokens / total);
  return made;
}

/** What is held free for the text, and what is simply free. */
function holds({ held, totals }, total) {
  const kept = (held?.immediate ?? 0) + (held?.retrieved ?? 0);
  const free = held ? held.free : totals.leftTokens;
  const hold = (kind, tokens) => {
    const made = h("span", { class: `part ${kind}`, "data-part": kind, title: string(kind === "held" ? "heldFree" : "free", tokens) });
    made.style.flexGrow = String(tokens / total);
    return made;
  };
  return [kept ? hold("held", kept) : null, free ? hold("free", free) : null];
}

function legend(sizes, { held, totals }) {
  const entry = (kind, text) => h("li", {}, h("i", { class: `key ${kind}` }), text);
  const kept = (held?.immediate ?? 0) + (held?.retrieved ?? 0);
  const free = held ? held.free : totals.leftTokens;
  return h("ul", { class: "legend" },
    ...ORDER.filter((name) => sizes[name]).map((name) => entry(name, `${string(name)} ${number(sizes[name])}`)),
    kept ? entry("held", string("heldFree", kept)) : null, free ? entry("free", string("free", free)) : null);
}

/** Edges that can be dragged: between two parts, and the end of the bar, which is the whole budget. */
function handles(sizes, total) {
  if (!profile) return [];
  const upTo = (name) => ORDER.slice(0, ORDER.indexOf(name) + 1).reduce((sum, one) => sum + sizes[one], 0);
  const inner = EDGES.map(([left, right]) => handle(`${left}-${right}`, upTo(left) / total, string("dragEdge", string(left), string(right)),
    { now: upTo(left), most: total, move: (tokens) => moveEdge(left, right, tokens - upTo(left)) }));
  return [...inner, handle("total", 1, string("dragTotal"), { now: total, most: LARGEST_TOTAL, move: moveTotal, from: () => whatIfProfile().totalBudgetTokens ?? total })];
}

/** Make an edge of the bar. Keys go on `from` what was asked for last, which may not be shown yet. */
function handle(name, at, label, { now, most, move, from = () => now }) {
  const made = h("span", { class: `handle ${name === "total" ? "total" : ""}`, role: "slider", tabindex: "0", "data-handle": name, "data-key": `handle:${name}`,
    "aria-label": label, title: label, "aria-valuemin": "0", "aria-valuemax": String(most), "aria-valuenow": String(now),
    "aria-valuetext": string("tokens", now),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (!step) return;
      event.preventDefault();
      move(from() + step * KEY_STEP);
    },
    onpointerdown: (event) => drag(event, made, now, move) });
  made.style.left = `${Math.min(100, at * 100)}%`;
  return made;
}

function drag(event, made, now, move) {
  event.preventDefault();
  made.focus();
  const bar = made.parentElement.getBoundingClientRect();
  const total = inspection.shown.result.totals.budgetTokens;
  const tokensAt = ({ clientX }) => now + Math.round(((clientX - event.clientX) / bar.width) * total);
  const mark = h("span", { class: "drag-mark" });
  made.parentElement.append(mark);
  const follow = (moved) => {
    mark.style.left = `${moved.clientX - bar.left}px`;
    mark.dataset.tokens = number(Math.max(0, tokensAt(moved)));
  };
  const drop = (moved) => {
    removeEventListener("pointermove", follow);
    removeEventListener("pointerup", drop);
    mark.remove();
    if (Math.abs(moved.clientX - event.clientX) > 2) move(tokensAt(moved));
  };
  addEventListener("pointermove", follow);
  addEventListener("pointerup", drop);
}

const whatIfProfile = () => inspection.whatIf?.profile ?? {};

function moveTotal(tokens) {
  const minimums = Object.values(layersNow()).reduce((sum, one) => sum + one.minimumTokens, 0);
  const total = Math.max(SMALLEST_TOTAL, minimums, Math.min(LARGEST_TOTAL, tokens));
  setWhatIf({ profile: { ...whatIfProfile(), totalBudgetTokens: total } });
}

const layersNow = () => whatIfProfile().layers ?? profile.layers;

/** Give one part more room at the cost of its neighbour: its share and its minimum. */
function moveEdge(left, right, by) {
  const total = inspection.shown.result.totals.budgetTokens;
  const layers = structuredClone(layersNow());
  const share = Math.max(-layers[left].ratio, Math.min(layers[right].ratio, by / total));
  const round = (value) => Math.round(value * 10_000) / 10_000;
  layers[left].ratio = round(layers[left].ratio + share);
  layers[right].ratio = round(layers[right].ratio - share);
  const tokens = Math.round(share * total);
  layers[right].minimumTokens = Math.max(0, layers[right].minimumTokens - Math.max(0, tokens));
  layers[left].minimumTokens = Math.max(0, layers[left].minimumTokens + Math.min(0, tokens));
  if (tokens < 0) layers[right].minimumTokens -= tokens;
  else layers[left].minimumTokens += tokens;
  setWhatIf({ profile: { ...whatIfProfile(), layers } });
}

function whatIfRow() {
  if (!inspection.shown?.request.whatIf) return null;
  return h("p", { class: "what-if" }, string("whatIfShown"), " ", button(string("keepThis"), keepThis, { class: "small primary", id: "keep-this" }),
    " ", button(string("backToReal"), () => setWhatIf(null), { class: "small", id: "back-to-real" }));
}

/** Save the budget that was tried. */
async function keepThis() {
  const { totalBudgetTokens, layers } = whatIfProfile();
  const before = contentsOf(profile);
  const change = { ...(totalBudgetTokens ? windowFor(totalBudgetTokens) : {}), ...(layers ? { layers } : {}) };
  const answer = await saveBudget(change);
  if (!answer.ok) return toast(errorText(answer.error));
  setWhatIf(null);
  return toast(string("budgetKept"), () => putBack(before));
}

/** Show what a change would do while the author points at its button; returns the handlers for it. `changes` returns the
    fields of a request that would be different. */
export function previewOf(changes) {
  let timer = 0;
  const show = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      asked += 1;
      const mine = asked;
      const result = await previewResult(changes());
      if (mine !== asked || !result) return;
      const { result: now } = inspection.shown;
      shownPreview = { result, coming: missingFrom(now, result), leaving: missingFrom(result, now) };
      showBar();
    }, HOVER_MS);
  };
  const hide = () => {
    clearTimeout(timer);
    asked += 1;
    if (!shownPreview) return;
    shownPreview = null;
    showBar();
  };
  return { onmouseenter: show, onfocus: show, onmouseleave: hide, onblur: hide };
}

/** Return the requests that pin a source, take its pin away, give the prompt a total of tokens, or read the whole chapter. */
export const withPin = (sourceRef) => () => ({ pinned: [...place.pinned, sourceRef] });
export const withoutPin = (sourceRef) => () => ({ pinned: place.pinned.filter((one) => one !== sourceRef) });
export const withTotal = (tokens) => () => ({ whatIf: { profile: { ...whatIfProfile(), totalBudgetTokens: tokens } } });
export const withSkill = (skillId) => () => ({ skillId });

/** Return the names of the pieces that one prompt lacks and another has. */
function missingFrom(one, other) {
  const known = new Set(piecesOf(one).filter(isIn).map((piece) => piece.sourceRef));
  const missing = piecesOf(other).filter((piece) => isIn(piece) && !known.has(piece.sourceRef));
  return [...new Set(missing.map((piece) => (piece.kind === "passage" ? string("passageOf", nameOf(piece)) : nameOf(piece))))];
}

function previewBar() {
  const { result, coming, leaving } = shownPreview;
  const total = result.totals.budgetTokens;
  const sizes = sizesOf(result);
  const parts = ORDER.map((name) => {
    const made = h("span", { class: `part ${name}` });
    made.style.flexGrow = String(sizes[name] / total);
    return made;
  });
  const rest = h("span", { class: "part free" });
  rest.style.flexGrow = String(Math.max(0, total - result.totals.tokenCount) / total);
  const few = (names) => listing(names.length > 3 ? [...names.slice(0, 3), string("andMore", names.length - 3)] : names);
  return h("div", { class: "preview", id: "preview", role: "status" }, h("p", { class: "number" }, string("budgetUsed", result.totals.tokenCount, total)),
    h("div", { class: "bar preview-bar", "aria-hidden": "true" }, ...parts, rest),
    coming.length ? h("p", {}, string("wouldCome", few(coming))) : null,
    h("p", {}, leaving.length ? string("wouldLeave", few(leaving)) : string("nothingLeaves")));
}

/** A prompt that cannot be made: how far it goes over, and what weighs most. */
function showOverflow(box, { budgetTokens: budget, neededTokens: needs, raiseTo, tokens, sources = [] }) {
  const total = Math.max(needs, budget);
  const known = { fixed: tokens.fixed ?? 0, rules: tokens.rules ?? 0, settings: tokens.settings ?? 0, retrieved: 0,
    immediate: (tokens.selection ?? 0) + (tokens.input ?? 0) + (tokens.task ?? 0) };
  const limit = h("span", { class: "limit", title: string("budgetLimit", budget) });
  limit.style.left = `${(budget / total) * 100}%`;
  limit.style.width = `${((total - budget) / total) * 100}%`;
  const bar = h("div", { class: "bar over", role: "img", "aria-label": string("overBudget", needs, budget) },
    ...ORDER.map((name) => part(name, known[name], total)), limit);
  fill(box, h("p", { class: "bar-head bad" }, h("strong", { id: "budget-total" }, string("overBudget", needs, budget))), bar,
    heaviest(sources, (one) => string("tokens", one.tokens)),
    raiseTo ? h("p", { class: "row" }, button(string("raiseTo", raiseTo), () => raiseBudget(raiseTo), { class: "primary", id: "raise-budget" })) : null);
}

/** More than any prompt can have, so that it was not even counted: what to shorten. */
function showLimit(box, { limitTokens, heaviest: sources = [] }) {
  const title = string("overLimit", limitTokens);
  const bar = h("div", { class: "bar over", role: "img", "aria-label": title }, h("span", { class: "limit whole" }));
  fill(box, h("p", { class: "bar-head bad" }, h("strong", { id: "budget-total" }, title)), bar, heaviest(sources, (one) => string("characters", one.characters)));
}

function heaviest(sources, weight) {
  const rows = sources.slice(0, 5).map((one) => h("li", {}, h("span", { class: "grow" }, nameOf({ name: subjectOf(one.sourceRef)?.name, content: "", ...one })),
    h("span", { class: "number" }, weight(one))));
  return rows.length ? h("div", { class: "heaviest" }, h("p", {}, string("heaviest")), h("ol", {}, ...rows)) : null;
}

/** Show the budget as a form. What the author typed is kept when someone else has saved first. */
export function showBudgetForm(box) {
  if (!profile) return;
  if (draftsOf !== place.projectId) drafts = {};
  draftsOf = place.projectId;
  const totals = Object.entries(TOTALS).map(([key, name]) => field(box, key, string(name), "1", profile[key]));
  fill(box, h("form", { onsubmit: (event) => save(event, box), novalidate: "" },
    h("div", { class: "fields" }, ...totals), h("div", { class: "fields shares" }, ...LAYERS.map((name) => shares(box, name))),
    h("p", { id: "budget-sum", class: "faint" }), h("button", { type: "submit", id: "save-budget", class: "primary" }, string("save")),
    h("p", { id: "budget-message", class: `message ${message.tone}`, role: "alert" }, message.text())));
  sum();
}

function shares(box, name) {
  const { ratio, minimumTokens } = profile.layers[name];
  return h("fieldset", {}, h("legend", {}, string(name)), field(box, `${name}.ratio`, string("ratio"), "1", Math.round(ratio * 10_000) / 100),
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

/** Return what a field says; shares are written in percent. */
const value = (key) => Number(byId(`budget-${key}`).value) / (key.endsWith(".ratio") ? 100 : 1);

function sum() {
  const rest = value("contextWindowTokens") - value("systemPromptTokens") - value("outputReserveTokens");
  const ratios = LAYERS.reduce((all, name) => all + value(`${name}.ratio`), 0);
  byId("budget-sum").textContent = string("budgetSum", Math.min(rest, LARGEST_TOTAL), percent(ratios));
}

async function save(event, box) {
  event.preventDefault();
  const layers = Object.fromEntries(LAYERS.map((name) => [name, { ratio: value(`${name}.ratio`), minimumTokens: value(`${name}.minimumTokens`) }]));
  const change = { layers, ...Object.fromEntries(Object.keys(TOTALS).map((key) => [key, value(key)])) };
  const before = contentsOf(profile);
  const answer = await saveBudget(change);
  if (answer.ok) drafts = {};
  message = answer.ok ? { text: () => string("saved"), tone: "good" } : { text: () => (isConflict(answer) ? string("conflict") : errorText(answer.error)), tone: "bad" };
  showBudgetForm(box);
  if (!answer.ok) return;
  signal("place", {});
  toast(string("budgetKept"), () => putBack(before));
}

onSignal(["inspected", "failed", "language"], () => showBar());
