// The evidence of an assembly: token counts, the prefix, what was cut and what was redacted.

import { byId, fill, h, table } from "./dom.js";
import { refButton, TONE } from "./fragments.js";
import { codeText, reason, string } from "./strings.js";

const SHOWN = 60;
const RANK = { dropped: 0, trimmed: 1, kept: 2 };
let all = false;

export function showSummary(result) {
  fill(byId("summary"), count(result), prefix(result), prompt(result));
  fill(byId("warnings"), ...result.warnings.map((one) => h("li", {}, codeText(one))));
}

function count({ totals, budget, targetTokens, tokenizerId, countKind, countTokens, countCorrection }) {
  const kind = { bound: string("bound", countTokens?.counted), approximate: string("inexact") }[countKind] ?? "";
  const learned = countCorrection ? string("corrected", countCorrection.factor, countCorrection.runs) : "";
  const details = [`${string("tokenizer")} ${tokenizerId}`, kind, learned, targetTokens ? string("target", targetTokens) : ""];
  const tokens = countKind === "bound" ? string("atMost", totals.tokenCount) : totals.tokenCount;
  return h("div", { class: "card" }, h("h3", {}, `${tokens} / ${budget.maxInputTokens} tokens`),
    h("p", {}, string("candidates", totals.candidates, totals.kept, totals.trimmed, totals.dropped)),
    h("p", { class: "faint" }, details.filter(Boolean).join(" · ")));
}

function prefix(result) {
  const { prefixChange, cacheBreakPoints, stablePrefixHash } = result;
  const { tokens, minimumTokens, reachesMinimum } = cacheBreakPoints.find(({ after }) => after === "systemPrompt");
  return h("div", { class: "card" }, h("h3", {}, string("hashPrefix"), " ", prefixBadge(result)),
    prefixChange ? h("p", {}, string("missBecause", string(prefixChange.change)), refButton(result, prefixChange.sourceRef)) : null,
    h("code", { id: "stable-prefix-hash" }, stablePrefixHash),
    h("p", { class: "faint" }, string(reachesMinimum ? "cacheable" : "prefixShort", tokens, minimumTokens)));
}

function prompt({ promptHash }) {
  return h("div", { class: "card" }, h("h3", {}, string("hashPrompt")), h("code", { id: "prompt-hash" }, promptHash));
}

/** Say how the prefix compares; what a cache holds is known only after a run, from the provider. */
function prefixBadge({ inspectMeta, prefixChange, stablePrefixUnchanged }) {
  const badge = (kind, tone, text) => h("span", { class: `badge ${tone}`, "data-prefix": kind }, text);
  if (inspectMeta.whatIf) return badge("none", "", string("prefixNone"));
  if (stablePrefixUnchanged) return badge("unchanged", "good", `✓ ${string("prefixUnchanged")}`);
  if (prefixChange) return badge("changed", "bad", `✗ ${string("prefixChanged")}`);
  return badge("first", "", string("prefixFirst"));
}

export function showTrim(result) {
  const rows = [...result.trimEvidence].sort((a, b) => RANK[a.action] - RANK[b.action]);
  if (!rows.length) return fill(byId("trim"), h("p", { class: "faint" }, string("nothingTrimmed")));
  const heads = [string("source"), string("reason"), string("chars"), string("tokens")];
  const row = (one) => [
    [refButton(result, one.sourceRef, one.layer), h("div", { class: "faint" }, string(one.layer))],
    [h("span", { class: `badge ${TONE[one.action]}` }, string(one.action)), ` ${reason(one.rule, one.action)} `, h("code", {}, one.action === "kept" ? one.rule : `${one.reason} · ${one.rule}`)],
    `${one.beforeChars} → ${one.afterChars}`,
    `${one.beforeTokens} → ${one.afterTokens}`,
  ];
  const more = rows.length > SHOWN && !all ? h("button", { type: "button", class: "quiet", onclick: () => {
    all = true;
    showTrim(result);
  } }, `${string("showAll")} (${rows.length})`) : null;
  return fill(byId("trim"), table(heads, rows.slice(0, all ? rows.length : SHOWN).map(row), [2, 3]), more);
}

export function showRedaction(result) {
  const row = (one) => [h("code", {}, one.patternId), refButton(result, one.sourceRef), String(one.matchCount)];
  const heads = [string("pattern"), string("source"), string("count")];
  const rows = result.redactionEvidence.map(row);
  fill(byId("redaction"), rows.length ? table(heads, rows, [2]) : h("p", { class: "faint" }, string("nothingRedacted")));
}
