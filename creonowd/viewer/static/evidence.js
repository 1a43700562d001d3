// What was cut, what was redacted, what the caches do, what changed since last time.

import { byId, capped, fill, h, table } from "./dom.js";
import { LAYERS } from "./layers.js";
import { word } from "./words.js";

const SHOWN = 60;

export function showSummary(result) {
  const { totals } = result;
  const inexact = result.tokenizerExact ? "" : ` · ${word("inexact")}`;
  fill(byId("summary"),
    h("div", { class: "card" }, h("b", {}, `${totals.tokenCount}${word("of")}${result.budget.maxInputTokens}`), ` tokens`,
      h("div", { class: "faint" }, word("candidates", totals.candidates, totals.kept, totals.trimmed, totals.dropped)),
      h("div", { class: "faint" }, `${word("tokenizer")} ${result.tokenizerId}${inexact}`)),
    h("div", { class: "card" }, word("hashPrefix"), " ", cacheSign(result), h("code", { title: result.stablePrefixHash }, result.stablePrefixHash),
      result.prefixChange ? h("div", { class: "faint" }, word("prefixChange", word(result.prefixChange.change), result.prefixChange.sourceRef)) : null),
    h("div", { class: "card" }, word("hashPrompt"), h("code", { title: result.promptHash }, result.promptHash),
      result.inspectMeta.whatIf ? h("span", { class: "badge warn" }, word("whatIfShown")) : null));
  if (result.warnings.length) byId("summary").after(warnings(result.warnings));
}

function warnings(list) {
  document.getElementById("warnings")?.remove();
  return h("ul", { class: "warnings", id: "warnings" }, ...list.map((one) => h("li", {}, one)));
}

export function clearWarnings() {
  document.getElementById("warnings")?.remove();
}

function cacheSign(result) {
  if (result.stablePrefixUnchanged) return h("span", { class: "badge good", "data-cache": "hit" }, `✓ ${word("cacheHit")}`);
  if (result.prefixChange) return h("span", { class: "badge bad", "data-cache": "miss" }, `✗ ${word("cacheMiss")}`);
  return h("span", { class: "badge", "data-cache": "first" }, word("cacheFirst"));
}

export function showTrim(result) {
  const heads = [word("layer"), word("source"), word("action"), word("why"), word("chars"), word("tokens")];
  const row = (one) => [word(one.layer), one.sourceRef, word(one.action), `${one.reason} · ${one.rule}`,
    `${one.beforeChars} → ${one.afterChars}`, `${one.beforeTokens} → ${one.afterTokens}`];
  const rank = { dropped: 0, trimmed: 1, kept: 2 };
  const rows = [...result.trimEvidence].sort((a, b) => rank[a.action] - rank[b.action]);
  if (!rows.length) return fill(byId("trim"), h("p", { class: "faint" }, word("nothingTrimmed")));
  const first = table(heads, rows.slice(0, SHOWN).map(row), [4, 5]);
  const button = rows.length > SHOWN ? h("button", { type: "button", class: "quiet", onclick: () => fill(byId("trim"), table(heads, rows.map(row), [4, 5])) },
    `${word("showAll")} (${rows.length})`) : null;
  return fill(byId("trim"), first, button);
}

export function showRedaction(result) {
  const rows = result.redactionEvidence.map((one) => [one.patternId, one.sourceRef, String(one.matchCount)]);
  fill(byId("redaction"), rows.length ? table([word("pattern"), word("source"), word("count")], rows, [2]) : h("p", { class: "faint" }, word("nothingRedacted")));
}

/** Compare two assemblies by source: what came, what went, what changed. */
export function difference(before, after) {
  const told = [];
  for (const layer of LAYERS) {
    const old = new Map(before.layersDetail[layer].fragments.map((one) => [one.sourceRef, one]));
    for (const one of after.layersDetail[layer].fragments) {
      const was = old.get(one.sourceRef);
      old.delete(one.sourceRef);
      if (!was) told.push({ layer, sourceRef: one.sourceRef, change: "added", from: 0, to: one.tokens });
      else if (was.content !== one.content || was.action !== one.action) told.push({ layer, sourceRef: one.sourceRef, change: "changed", from: was.tokens, to: one.tokens, was: was.action, is: one.action });
    }
    for (const one of old.values()) told.push({ layer, sourceRef: one.sourceRef, change: "removed", from: one.tokens, to: 0 });
  }
  return told;
}

export function showDifference(before, after) {
  if (!before) return fill(byId("difference"), h("p", { class: "faint" }, word("noPrevious")));
  const rows = difference(before, after);
  if (!rows.length) return fill(byId("difference"), h("p", { class: "faint" }, word("noDifference")));
  return fill(byId("difference"), capped(rows, SHOWN, word("showAll"), (one) => h("div", {},
    h("span", { class: "badge" }, word(one.layer)), " ", `${word(one.change)} `, h("span", { class: "ref" }, one.sourceRef),
    h("span", { class: "told" }, `  ${one.from} → ${one.to} tokens`),
    one.was && one.was !== one.is ? h("span", { class: "faint" }, `  ${word(one.was)} → ${word(one.is)}`) : null)));
}
