// What the model sees at the author's place: requested, compared with the previous assembly, and shown.

import { showBars } from "./bars.js";
import { profile, reloadBudget } from "./budget.js";
import { difference, showDifference } from "./difference.js";
import { byId } from "./dom.js";
import { instruction, place } from "./editorState.js";
import { showRedaction, showSummary, showTrim } from "./evidence.js";
import { showLayers } from "./fragments.js";
import { invoke } from "./rpc.js";
import { isConnected, setStatus } from "./status.js";
import { errorText, locale, string } from "./strings.js";

const PAUSE_MS = 150;
const state = { shown: null, real: null, previous: null, total: 0, reportedTotal: 0, requests: 0, timer: 0 };

/** Inspect again soon; several calls in a row inspect once. */
export function refresh() {
  clearTimeout(state.timer);
  state.timer = setTimeout(inspect, PAUSE_MS);
}

/** Remove what is shown: it belongs to another project. */
export function clear() {
  Object.assign(state, { shown: null, real: null, previous: null });
  byId("contents").hidden = true;
}

/** Show an error, and that what is shown may be out of date. */
export function markOutdated(message) {
  state.requests += 1;
  const since = state.shown ? () => ` ${string("stale", clock(state.shown.at))}` : () => "";
  setStatus("error", () => message() + since());
}

/** Set the slider to the budget, unless the author has moved it; it begins at the sum of the minimums. */
export function followBudget() {
  const { layers, totalBudgetTokens } = profile();
  const isMoved = state.total && Number(byId("slider").value) !== state.total;
  state.total = totalBudgetTokens;
  byId("slider").min = String(Math.max(100, Object.values(layers).reduce((sum, one) => sum + one.minimumTokens, 0)));
  if (!isMoved) setSlider(totalBudgetTokens);
}

/** Return to the real budget and document. */
export function resetWhatIf() {
  byId("scratch").value = "";
  setSlider(state.total);
}

function setSlider(tokens) {
  byId("slider").value = String(tokens);
  showSliderValue();
}

export function showSliderValue() {
  byId("slider-value").textContent = byId("slider").value;
}

/** Return the what-if that the author has entered, or null. */
function whatIf() {
  const total = Number(byId("slider").value);
  const text = byId("scratch").value;
  const entered = {
    ...(state.total && total !== state.total ? { profile: { totalBudgetTokens: total } } : {}),
    ...(text ? { text } : {}),
  };
  return Object.keys(entered).length ? entered : null;
}

function request() {
  const hypothesis = whatIf();
  const cursor = hypothesis?.text ? { cursorPosition: byId("scratch").selectionEnd, selection: undefined } : {};
  return {
    ...place(),
    ...cursor,
    ...(instruction() ? { additionalInput: instruction() } : {}),
    ...(hypothesis ? { whatIf: hypothesis } : {}),
    debugMode: true,
  };
}

async function inspect() {
  const sent = request();
  if (!sent.projectId || byId("inspector").hidden || !isConnected()) return;
  if (!sent.documentId) {
    setStatus("empty", () => string("noDocument"));
    return;
  }
  state.requests += 1;
  const mine = state.requests;
  byId("inspector").setAttribute("aria-busy", "true");
  if (!state.shown) setStatus("loading", () => string("loading"));
  const answer = await invoke("context:inspect", sent);
  if (mine !== state.requests) return;
  byId("inspector").setAttribute("aria-busy", "false");
  if (answer.error?.code === "DISCONNECTED") return;
  if (!answer.ok) {
    markOutdated(() => errorText(answer.error));
    return;
  }
  keep({ at: new Date(), request: sent, result: answer.data });
  if (answer.data.inspectMeta.whatIf) setStatus("whatIf", () => string("whatIfShown"));
  else setStatus("ready", () => "");
  show();
}

function keep(assembly) {
  state.shown = assembly;
  if (assembly.result.inspectMeta.whatIf) return;
  checkBudget(assembly.result.budget.maxInputTokens);
  if (assembly.result.promptHash !== state.real?.result.promptHash) state.previous = state.real;
  state.real = assembly;
}

/** Reload the budget if the assembly used another; only once per total, because a fallback never agrees. */
function checkBudget(total) {
  const isNew = total !== state.total && total !== state.reportedTotal;
  state.reportedTotal = total;
  if (isNew) reloadBudget();
}

/** Show the last assembly, in the language of the page. */
export function show() {
  if (!state.shown) return;
  const { result } = state.shown;
  byId("contents").hidden = false;
  byId("export").disabled = false;
  byId("export-texts").disabled = false;
  showSummary(result);
  showBars(result);
  showLayers(result);
  showTrim(result);
  showRedaction(result);
  const before = earlier();
  const heading = before ? string("comparedWith", clock(before.at), before.request.skillId ?? string("general"), before.request.documentId) : "";
  showDifference(before?.result, result, heading);
}

/** Show the fragments that match the search. */
export function showFragments() {
  if (state.shown) showLayers(state.shown.result);
}

const earlier = () => (state.shown.result.inspectMeta.whatIf ? state.real : state.previous);
const clock = (at) => at.toLocaleTimeString(locale());

/** Return the contents of an export: every text in it was redacted by the daemon, or is left out. */
export function report() {
  const { request: sent, at, result } = state.shown;
  const { additionalInput = "", whatIf: hypothesis, ...where } = sent;
  const before = earlier();
  const changes = before ? difference(before.result, result).map(({ layer, was, is }) => ({ layer, sourceRef: (is ?? was).sourceRef, was: was?.action, is: is?.action })) : [];
  const scratch = hypothesis ? { whatIf: { ...hypothesis, text: undefined, textLength: hypothesis.text?.length ?? 0 } } : {};
  return { assembledAt: at.toISOString(), request: { ...where, ...scratch, inputLength: additionalInput.length }, profile: profile(), inspect: result, changes };
}
