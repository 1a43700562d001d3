// What the model sees at the author's place: asked for soon after each change, and kept with the one before.

import { byId } from "./dom.js";
import { place, whereabouts } from "./place.js";
import { invoke, isConnected } from "./rpc.js";
import { onSignal, signal } from "./signals.js";

// A change is asked for at once, unless the last one was a moment ago: typing on must leave time to draw.
const PAUSE_MS = 100;

/** `shown` is what the page shows, `real` the last without a what-if, `baseline` what *since last time* compares with;
    `busy` from a change until what the model sees then is shown. */
export const inspection = { shown: null, real: null, baseline: null, baselineIs: "opened", failure: null, whatIf: null, busy: false };

let lastStart = 0;
let timer = 0;
let running = null;
let wanted = null;
let generation = 0;

/** Inspect again soon; `cause` is `author` for what was done in this page, `elsewhere` for a file that changed. */
export function refresh(cause = "author") {
  wanted = wanted === "author" ? wanted : cause;
  setBusy(true);
  if (!timer && !running) timer = setTimeout(start, pauseLeft());
}

const pauseLeft = () => Math.max(0, lastStart + PAUSE_MS - performance.now());

/** Ask until nothing more is wanted. What was typed meanwhile is asked for before an answer is shown, so that the
    daemon works while the page draws. */
async function start() {
  timer = 0;
  let show = () => {};
  do {
    running = ask(show);
    show = await running;
  } while (wanted && !pauseLeft());
  running = null;
  show();
  if (wanted) refresh(wanted);
  else setBusy(false);
}

/** Return once nothing is being asked any more. */
export async function untilIdle() {
  while (running) await running;
}

/** Ask what the model sees now, then do some `work` while the daemon answers; return how to show the answer. */
async function ask(work) {
  lastStart = performance.now();
  const cause = wanted;
  wanted = null;
  await beforeInspect();
  if (!place.projectId || !place.documentId || !isConnected()) return work;
  const mine = generation;
  const sent = request();
  const pending = invoke("context:inspect", sent);
  work();
  const answer = await pending;
  const inspected = { at: new Date(), request: sent, result: answer.data };
  return () => {
    if (mine === generation && answer.error?.code !== "DISCONNECTED") show(inspected, answer, cause);
  };
}

function show(inspected, { ok, error }, cause) {
  if (!ok) {
    inspection.failure = { ...error, request: inspected.request };
    signal("failed", error);
    return;
  }
  keep(inspected);
  signal("inspected", cause);
}

let beforeInspect = async () => {};

/** Have `work` done before each request: what was typed must have reached the daemon. */
export function prepare(work) {
  beforeInspect = work;
}

function request() {
  const { whatIf } = inspection;
  return {
    ...whereabouts(),
    ...(place.instruction ? { additionalInput: place.instruction } : {}),
    ...(whatIf ? { whatIf } : {}),
    show: ["why", "coverage", "names", ...(place.tab === "prompt" ? ["prompt"] : [])],
    debugMode: true,
    brief: true,
  };
}

/** Return all evidence on what is shown; null if there is none to have. */
export async function wholeEvidence() {
  const answer = await invoke("context:inspect", { ...inspection.shown.request, show: [], brief: false });
  return answer.ok ? answer.data.trimEvidence : null;
}

/** Ask what would be, and show nothing of it; null if that cannot be. */
export async function previewResult(changes) {
  const whatIf = { ...inspection.whatIf, ...changes.whatIf };
  const answer = await invoke("context:inspect", { ...request(), ...changes, whatIf, show: ["why"] });
  return answer.ok ? answer.data : null;
}

/** Explain what became of something. */
export function explain(about) {
  const { show, brief, ...where } = request();
  return invoke("context:explain", { ...where, about });
}

/** Suppose another budget; null goes back to what is. */
export function setWhatIf(changes) {
  inspection.whatIf = changes && Object.keys(changes).length ? changes : null;
  refresh();
}

function keep(inspected) {
  inspection.failure = null;
  inspection.shown = inspected;
  if (inspected.request.whatIf) return;
  inspection.real = inspected;
  inspection.baseline ??= inspected;
  if (isIndexing(inspection.baseline.result)) inspection.baseline = withPassages(inspection.baseline, inspected.result);
}

/** Whether no prompt can be made, because there is more than fits. */
export const isTooLarge = () => inspection.failure?.code === "CONTEXT_INPUT_TOO_LARGE";

/** Whether passages may be missing because the index is still being built. */
export const isIndexing = ({ notices }) => notices.some((one) => one.code === "RETRIEVAL_INDEXING");

/** Return an inspection with the passages of a later one: what the index still brings is no change of the author's. */
function withPassages(before, { layersDetail, notices, trimEvidence }) {
  return { ...before, result: { ...before.result, notices, trimEvidence, layersDetail: { ...before.result.layersDetail, retrieved: layersDetail.retrieved } } };
}

/** From now on, *since last time* means since this prompt. */
export function compareFrom(inspected, is) {
  Object.assign(inspection, { baseline: inspected, baselineIs: is });
}

/** Forget what is shown: it belongs to another project. */
export function clear() {
  generation += 1;
  Object.assign(inspection, { shown: null, real: null, baseline: null, baselineIs: "opened", failure: null, whatIf: null });
}

function setBusy(isBusy) {
  inspection.busy = isBusy;
  byId("panel").setAttribute("aria-busy", String(isBusy));
}

onSignal("place", () => refresh());
