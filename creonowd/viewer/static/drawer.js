// The drawer: budget, rules, the AI, usage, figures for developers, export.

import { budgetProfile, showBudgetForm } from "./budget.js";
import { byId, button, copyButton, fill, h, table } from "./dom.js";
import { inspection, isTooLarge, wholeEvidence } from "./inspection.js";
import { errorText, locale, number, string } from "./language.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { showRules } from "./rules.js";
import { onSignal, signal } from "./signals.js";
import { sinceLastTime } from "./changes.js";
import { toast } from "./undo.js";

const BOXES = [
  { id: "budget-box", title: "budget", show: showBudgetForm },
  { id: "rules-box", title: "rulesBox", show: showRules },
  { id: "ai-box", title: "ai", show: showBackends },
  { id: "usage-box", title: "usage", show: showUsage },
  { id: "developer-box", title: "developer", show: showDeveloper },
  { id: "export-box", title: "exportBox", show: showExport },
];
const EDITORS = ["budget-box", "rules-box"];
const CONNECT = "creonowd ai add";
const USAGE_DAYS = 30;
const USAGE_HEADS = ["usageModel", "usageCalls", "usageInput", "usageRead", "usageWritten", "usageOutput", "usageCost", "usageSaved"];
const EVIDENCE_SHOWN = 60;
const EVIDENCE_ORDER = { dropped: 0, trimmed: 1, kept: 2 };
let opener = null;
let allEvidence = false;

/** Build the drawer of its boxes; each can be opened by itself. */
function makeDrawer() {
  const made = BOXES.map(({ id, title, show }) => {
    const content = h("div", { class: "box-content" });
    const box = h("details", { class: "box", id, ontoggle: () => box.open && show(content) }, h("summary", {}, h("h3", { "data-string": title }, string(title))), content);
    onSignal(["language", "inspected", "budget", "drawer-contents"], () => box.open && show(content));
    return box;
  });
  fill(byId("drawer"), h("header", {}, h("h2", { id: "drawer-title", "data-string": "drawer" }, string("drawer")),
    button("×", closeDrawer, { class: "close", id: "drawer-close", "data-label": "close", "aria-label": string("close") })), ...made);
}

/** Open the drawer, at one of its boxes if that is named. */
export function openDrawer(id) {
  const box = id && byId(id);
  if (box) box.open = true;
  if (!box || byId("drawer").contains(box)) {
    opener = document.activeElement;
    byId("drawer").hidden = false;
    byId("drawer-toggle").setAttribute("aria-expanded", "true");
  }
  box?.scrollIntoView({ block: "start" });
  (box ? box.querySelector("summary") : byId("drawer-close")).focus();
}

export function closeDrawer() {
  if (byId("drawer").hidden) return false;
  byId("drawer").hidden = true;
  byId("drawer-toggle").setAttribute("aria-expanded", "false");
  (opener && document.contains(opener) ? opener : byId("drawer-toggle")).focus({ preventScroll: true });
  return true;
}

/** While no prompt can be made, the editors that help stand open in the panel; afterwards they are in the drawer again. */
function showEditors() {
  const mustHelp = isTooLarge();
  const editors = byId("editors");
  const boxes = EDITORS.map(byId);
  if (mustHelp === !editors.hidden) return;
  editors.hidden = !mustHelp;
  boxes.forEach((box) => { box.open = mustHelp; });
  if (mustHelp) editors.append(...boxes);
  else byId("drawer").querySelector("header").after(...boxes);
}

export function listenToDrawer() {
  makeDrawer();
  byId("drawer-toggle").addEventListener("click", () => (byId("drawer").hidden ? openDrawer() : closeDrawer()));
  onSignal("drawer", openDrawer);
  onSignal(["inspected", "failed"], showEditors);
}

/** Ask which back ends there are and show them. */
async function showBackends(box) {
  const answer = await invoke("ai:config:get", { projectId: place.projectId || undefined });
  if (!answer.ok) return fill(box, h("p", { class: "faint" }, errorText(answer.error)));
  const { backend, backends, provider, model, ready, problem, judgedBy } = answer.data;
  const isFake = provider === "fake";
  const rows = backends.map((one) => h("li", { class: "row" }, h("span", { class: "grow" }, backendName(one), " ", h("span", { class: "faint" }, [one.provider === "fake" ? "" : one.provider, one.model].filter(Boolean).join(" · "))),
    one.name === backend ? h("span", { class: "badge good" }, string("inUse")) : button(string("use"), () => use(one.name, backend), { class: "small" })));
  return fill(box,
    h("p", { class: ready && !isFake ? "" : "warn-text" }, isFake ? string("fake") : ready ? string("aiReady", model || provider) : problem || string("aiNotReady")),
    isFake || !ready ? h("p", { class: "row" }, h("code", {}, CONNECT), copyButton(string("copy"), () => CONNECT, { class: "small", done: string("copied"), failed: string("copyFailed") })) : null,
    h("ul", { class: "plain" }, ...rows), h("p", { class: "faint" }, string(`judged ${judgedBy}`)));
}

/** Return what an author calls a back end; that of the settings has no name of its own. */
function backendName({ name, provider }) {
  if (name !== "default") return name;
  return string(provider === "fake" ? "standIn" : "defaultBackend");
}

async function use(name, before) {
  const answer = await invoke("ai:config:set", { use: name });
  if (!answer.ok) return toast(errorText(answer.error));
  signal("place", {});
  return toast(string("nowUses", name), async () => {
    await invoke("ai:config:set", { use: before });
    signal("place", {});
  });
}

/** Ask for the usage and show it. */
async function showUsage(box) {
  const from = Math.max(0, Date.now() - USAGE_DAYS * 86_400_000);
  const answer = await invoke("ai:usage", { projectId: place.projectId, groupBy: "model", from });
  fill(box, ...(answer.ok ? usageReport(answer.data) : [h("p", { class: "faint" }, errorText(answer.error))]));
}

function usageReport({ groups, total, lostTo, currency, pricesAsOf }) {
  if (!groups.length) return [h("p", { class: "faint" }, string("noUsage"))];
  const money = new Intl.NumberFormat(locale(), { style: "currency", currency, maximumFractionDigits: 4 });
  const rows = [...groups, { ...total, key: string("total") }].map((one) => [one.key, ...[one.calls, one.inputTokens,
    one.cacheReadTokens, one.cacheWriteTokens, one.outputTokens].map(number), money.format(one.cost), money.format(one.saved)]);
  const lost = lostTo.map((one) => h("li", {}, string("usageLost", one.sourceRef, one.tokens, string("calls", one.calls))));
  return [
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": string("usage") }, table(USAGE_HEADS.map((head) => string(head)), rows, [1, 2, 3, 4, 5, 6, 7])),
    lost.length ? h("ul", {}, ...lost) : null,
    h("p", { class: "faint" }, string("usagePrices", pricesAsOf), " ", total.unpricedCalls ? string("usageUnpriced", total.unpricedCalls) : "", " ",
      total.unreportedCalls ? string("usageUnreported", total.unreportedCalls) : ""),
  ];
}

/** Show hashes, codes, the tokenizer and the evidence for every candidate, as the protocol calls them. */
async function showDeveloper(box) {
  if (!inspection.shown) return fill(box, h("p", { class: "faint" }, inspection.failure ? inspection.failure.code : string("loading")));
  const { result } = inspection.shown;
  const trimEvidence = await wholeEvidence();
  if (!trimEvidence || result !== inspection.shown.result) return undefined;
  return fill(box, facts(result), redaction(result), warnings(result), ...evidence({ trimEvidence }, box));
}

function facts(result) {
  const { stablePrefixHash, promptHash, tokenizerId, countKind, countTokens, countCorrection, totals, targetTokens } = result;
  const rows = [
    ["stablePrefixHash", h("code", { id: "stable-prefix-hash" }, stablePrefixHash)],
    ["promptHash", h("code", { id: "prompt-hash" }, promptHash)],
    ["tokenCount", h("code", { id: "token-count" }, `${totals.tokenCount} / ${totals.budgetTokens}`)],
    ["candidates", h("code", {}, `${totals.candidates} = ${totals.kept} + ${totals.trimmed} + ${totals.dropped}`)],
    ["tokenizer", h("code", {}, [tokenizerId, countKind, countTokens ? `${countTokens.counted} ≤ ${countTokens.bound}` : ""].filter(Boolean).join(" · "))],
    countCorrection ? ["countCorrection", h("code", {}, `÷ ${countCorrection.factor} (${countCorrection.runs})`)] : null,
    targetTokens ? ["targetTokens", h("code", {}, String(targetTokens))] : null,
  ].filter(Boolean);
  return h("dl", { class: "facts" }, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function redaction({ redactionEvidence }) {
  if (!redactionEvidence.length) return null;
  return h("div", { id: "redaction", class: "scroll", tabindex: "0", role: "region", "aria-label": "redactionEvidence" }, table(["patternId", "sourceRef", "matchCount"],
    redactionEvidence.map((one) => [h("code", {}, one.patternId), one.sourceRef, number(one.matchCount)]), [2]));
}

function warnings(result) {
  return result.warnings.length ? h("ul", { id: "codes" }, ...result.warnings.map((one) => h("li", {}, h("code", {}, one)))) : null;
}

function evidence(result, box) {
  const rows = [...result.trimEvidence].sort((one, two) => EVIDENCE_ORDER[one.action] - EVIDENCE_ORDER[two.action]);
  const heads = ["sourceRef", "action · reason · rule", "chars", "tokens"];
  const row = (one) => [h("code", {}, `${one.layer} ${one.sourceRef}`), h("code", {}, `${one.action} · ${one.reason} · ${one.rule}`),
    `${number(one.beforeChars)} → ${number(one.afterChars)}`, `${number(one.beforeTokens)} → ${number(one.afterTokens)}`];
  return [
    h("div", { id: "evidence", class: "scroll", tabindex: "0", role: "region", "aria-label": "trimEvidence" }, table(heads, rows.slice(0, allEvidence ? rows.length : EVIDENCE_SHOWN).map(row), [2, 3])),
    rows.length > EVIDENCE_SHOWN && !allEvidence ? button(string("showAll", rows.length), () => {
      allEvidence = true;
      showDeveloper(box);
    }, { class: "link" }) : null,
  ];
}

/** Offer both kinds of export, the one without texts first. */
function showExport(box) {
  const isEmpty = !inspection.shown;
  fill(box, h("p", {}, button(string("export"), () => download(), { id: "export", disabled: isEmpty }), " ", h("span", { class: "faint" }, string("exportHint"))),
    h("p", {}, button(string("exportTexts"), () => download({ texts: true }), { id: "export-texts", disabled: isEmpty }), " ", h("span", { class: "faint" }, string("exportTextsHint"))));
}

/** Offer the report as a download. What the author typed is not in it, only how long it was. */
async function download({ texts = false } = {}) {
  const health = await invoke("app:health", {});
  const contents = report(await wholeEvidence());
  if (!texts) contents.inspect = await withoutTexts(contents.inspect);
  const whole = { exportedFrom: "creonowd", health: health.ok ? health.data : health.error, ...contents };
  const blob = new Blob([JSON.stringify(whole, null, 2)], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(blob), download: "creonow-context.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function report(trimEvidence) {
  const { request, at, result } = inspection.shown;
  const { additionalInput = "", show, brief, ...where } = request;
  const { prompt, names, ...rest } = result;
  const inspect = { ...rest, ...(trimEvidence ? { trimEvidence } : {}) };
  const changes = sinceLastTime().map(({ was, is }) => ({ layer: (is ?? was).layer, sourceRef: (is ?? was).sourceRef, was: was?.action, is: is?.action }));
  return { assembledAt: at.toISOString(), request: { ...where, inputLength: additionalInput.length }, profile: budgetProfile(), inspect, changes };
}

/** Replace every text by its length and hash: enough to compare two reports, nothing to read. */
async function withoutTexts({ coverage, ...inspect }) {
  const layers = await Promise.all(
    Object.entries(inspect.layersDetail).map(async ([name, layer]) => {
      const fragments = await Promise.all(layer.fragments.map(withoutContent));
      return [name, { ...(await withoutContent(layer)), fragments }];
    }),
  );
  return { ...inspect, layersDetail: Object.fromEntries(layers) };
}

async function withoutContent({ content, name, why, ...rest }) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content));
  const contentHash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { ...rest, contentLength: content.length, contentHash };
}
