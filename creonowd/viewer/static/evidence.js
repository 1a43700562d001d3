// What was cut, what was redacted, and what the caches do.

import { byId, fill, h, table } from "./dom.js";
import { refButton, TONE } from "./fragments.js";
import { spellCode, why, word } from "./strings.js";

const SHOWN = 60;
const RANK = { dropped: 0, trimmed: 1, kept: 2 };
let all = false;

export function showSummary(result) {
  fill(byId("summary"), count(result), prefix(result), prompt(result));
  fill(byId("warnings"), ...result.warnings.map((one) => h("li", {}, spellCode(one))));
}

function count({ totals, budget, targetTokens, tokenizerId, tokenizerExact }) {
  const told = [`${word("tokenizer")} ${tokenizerId}`, tokenizerExact ? "" : word("inexact"), targetTokens ? word("target", targetTokens) : ""];
  return h("div", { class: "card" }, h("h3", {}, `${totals.tokenCount} / ${budget.maxInputTokens} tokens`),
    h("p", {}, word("candidates", totals.candidates, totals.kept, totals.trimmed, totals.dropped)),
    h("p", { class: "faint" }, told.filter(Boolean).join(" · ")));
}

function prefix(result) {
  const { prefixChange, cacheBreakPoints, stablePrefixHash } = result;
  const { tokens, minimumTokens, reachesMinimum } = cacheBreakPoints.at(-1);
  return h("div", { class: "card" }, h("h3", {}, word("hashPrefix"), " ", cacheSign(result)),
    prefixChange ? h("p", {}, word("missBecause", word(prefixChange.change)), refButton(result, prefixChange.sourceRef)) : null,
    h("code", { id: "stable-prefix-hash" }, stablePrefixHash),
    h("p", { class: "faint" }, word(reachesMinimum ? "cacheable" : "notCacheable", tokens, minimumTokens)));
}

function prompt({ promptHash }) {
  return h("div", { class: "card" }, h("h3", {}, word("hashPrompt")), h("code", { id: "prompt-hash" }, promptHash));
}

function cacheSign({ inspectMeta, prefixChange, stablePrefixUnchanged }) {
  const sign = (kind, tone, text) => h("span", { class: `badge ${tone}`, "data-cache": kind }, text);
  if (inspectMeta.whatIf) return sign("none", "", word("cacheNone"));
  if (stablePrefixUnchanged) return sign("hit", "good", `✓ ${word("cacheHit")}`);
  if (prefixChange) return sign("miss", "bad", `✗ ${word("cacheMiss")}`);
  return sign("first", "", word("cacheFirst"));
}

export function showTrim(result) {
  const rows = [...result.trimEvidence].sort((a, b) => RANK[a.action] - RANK[b.action]);
  if (!rows.length) return fill(byId("trim"), h("p", { class: "faint" }, word("nothingTrimmed")));
  const heads = [word("source"), word("why"), word("chars"), word("tokens")];
  const row = (one) => [
    [refButton(result, one.sourceRef, one.layer), h("div", { class: "faint" }, word(one.layer))],
    [h("span", { class: `badge ${TONE[one.action]}` }, word(one.action)), ` ${why(one.rule, one.action)} `, h("code", {}, one.action === "kept" ? one.rule : `${one.reason} · ${one.rule}`)],
    `${one.beforeChars} → ${one.afterChars}`,
    `${one.beforeTokens} → ${one.afterTokens}`,
  ];
  const more = rows.length > SHOWN && !all ? h("button", { type: "button", class: "quiet", onclick: () => {
    all = true;
    showTrim(result);
  } }, `${word("showAll")} (${rows.length})`) : null;
  return fill(byId("trim"), table(heads, rows.slice(0, all ? rows.length : SHOWN).map(row), [2, 3]), more);
}

export function showRedaction(result) {
  const row = (one) => [h("code", {}, one.patternId), refButton(result, one.sourceRef), String(one.matchCount)];
  const heads = [word("pattern"), word("source"), word("count")];
  const rows = result.redactionEvidence.map(row);
  fill(byId("redaction"), rows.length ? table(heads, rows, [2]) : h("p", { class: "faint" }, word("nothingRedacted")));
}
