// What the model gets to see at this place: asked for, compared with last time, and shown.

import { showBars } from "./bars.js";
import { profile, reloadBudget } from "./budget.js";
import { invoke } from "./rpc.js";
import { instruction, model, place } from "./editorState.js";
import { difference, showDifference } from "./difference.js";
import { byId } from "./dom.js";
import { showRedaction, showSummary, showTrim } from "./evidence.js";
import { showLayers } from "./fragments.js";
import { isConnected, say } from "./status.js";
import { locale, spellError, word } from "./strings.js";

const PAUSE_MS = 150;
const state = { shown: null, real: null, previous: null, total: 0, noticed: 0, asked: 0, timer: 0 };

/** Ask again soon; a burst of reasons asks once. */
export function refresh() {
  clearTimeout(state.timer);
  state.timer = setTimeout(inspect, PAUSE_MS);
}

/** Forget what was shown: it was of another project. */
export function clear() {
  Object.assign(state, { shown: null, real: null, previous: null });
  byId("contents").hidden = true;
}

/** Say that what is shown is no longer known to be true. */
export function outdate(sentence) {
  state.asked += 1;
  const since = state.shown ? () => ` ${word("stale", clock(state.shown.at))}` : () => "";
  say("error", () => sentence() + since());
}

/** Let the slider follow the budget, unless it was moved; below the sum of the minimums there is none. */
export function followBudget() {
  const { layers, totalBudgetTokens } = profile();
  const isMoved = state.total && Number(byId("slider").value) !== state.total;
  state.total = totalBudgetTokens;
  byId("slider").min = String(Math.max(100, Object.values(layers).reduce((sum, one) => sum + one.minimumTokens, 0)));
  if (!isMoved) setSlider(totalBudgetTokens);
}

/** Leave the what-if. */
export function resetWhatIf() {
  byId("scratch").value = "";
  setSlider(state.total);
}

function setSlider(tokens) {
  byId("slider").value = String(tokens);
  tellSlider();
}

export function tellSlider() {
  byId("slider-value").textContent = byId("slider").value;
}

/** What the what-if box asks for, if anything. */
function whatIf() {
  const total = Number(byId("slider").value);
  const text = byId("scratch").value;
  const asked = {
    ...(state.total && total !== state.total ? { profile: { totalBudgetTokens: total } } : {}),
    ...(text ? { text } : {}),
  };
  return Object.keys(asked).length ? asked : null;
}

function request() {
  const supposed = whatIf();
  const cursor = supposed?.text ? { cursorPosition: byId("scratch").selectionEnd, selection: undefined } : {};
  return {
    ...place(),
    ...cursor,
    ...model(),
    ...(instruction() ? { additionalInput: instruction() } : {}),
    ...(supposed ? { whatIf: supposed } : {}),
    debugMode: true,
  };
}

async function inspect() {
  const asking = request();
  if (!asking.projectId || byId("panel").hidden || !isConnected()) return;
  if (!asking.documentId) return void say("empty", () => word("noDocument"));
  state.asked += 1;
  const mine = state.asked;
  byId("panel").setAttribute("aria-busy", "true");
  if (!state.shown) say("loading", () => word("loading"));
  const answer = await invoke("context:inspect", asking);
  if (mine !== state.asked) return;
  byId("panel").setAttribute("aria-busy", "false");
  if (answer.error?.code === "DISCONNECTED") return;
  if (!answer.ok) return void outdate(() => spellError(answer.error));
  take({ at: new Date(), asked: asking, result: answer.data });
  if (answer.data.inspectMeta.whatIf) say("whatIf", () => word("whatIfShown"));
  else say("ready", () => "");
  show();
}

function take(answer) {
  state.shown = answer;
  if (answer.result.inspectMeta.whatIf) return;
  noticeBudget(answer.result.budget.maxInputTokens);
  if (answer.result.promptHash !== state.real?.result.promptHash) state.previous = state.real;
  state.real = answer;
}

/** Load the budget again when an assembly shows that it is another; once, for a fallback stays another. */
function noticeBudget(total) {
  const isNews = total !== state.total && total !== state.noticed;
  state.noticed = total;
  if (isNews) reloadBudget();
}

/** Show what was last answered, in the language of the page. */
export function show() {
  if (!state.shown) return;
  const { result } = state.shown;
  byId("contents").hidden = false;
  byId("export").disabled = false;
  showSummary(result);
  showBars(result);
  showLayers(result);
  showTrim(result);
  showRedaction(result);
  const before = earlier();
  const told = before ? word("comparedWith", clock(before.at), before.asked.skillId, before.asked.documentId) : "";
  showDifference(before?.result, result, told);
}

/** Show the fragments anew: another text is sought. */
export function find() {
  if (state.shown) showLayers(state.shown.result);
}

const earlier = () => (state.shown.result.inspectMeta.whatIf ? state.real : state.previous);
const clock = (at) => at.toLocaleTimeString(locale());

/** What an export holds: every text in it has been redacted by the daemon, or is left out. */
export function report() {
  const { asked, at, result } = state.shown;
  const { additionalInput = "", whatIf: supposed, ...where } = asked;
  const before = earlier();
  const changes = before ? difference(before.result, result).map(({ layer, was, is }) => ({ layer, sourceRef: (is ?? was).sourceRef, was: was?.action, is: is?.action })) : [];
  const scratch = supposed ? { whatIf: { ...supposed, text: undefined, textLength: supposed.text?.length ?? 0 } } : {};
  return { assembledAt: at.toISOString(), request: { ...where, ...scratch, inputLength: additionalInput.length }, profile: profile(), inspect: result, changes };
}
