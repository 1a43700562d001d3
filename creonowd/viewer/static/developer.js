// For developers: hashes, codes, the tokenizer and the evidence for every candidate, as the protocol calls them.

import { button, fill, h, table } from "./dom.js";
import { inspection } from "./inspection.js";
import { number, string } from "./language.js";

const SHOWN = 60;
const RANK = { dropped: 0, trimmed: 1, kept: 2 };
let all = false;

export function showDeveloper(box) {
  if (!inspection.shown) return fill(box, h("p", { class: "faint" }, inspection.failure ? inspection.failure.code : string("loading")));
  const { result } = inspection.shown;
  return fill(box, facts(result), redaction(result), warnings(result), ...evidence(result, box));
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
  const rows = [...result.trimEvidence].sort((one, two) => RANK[one.action] - RANK[two.action]);
  const heads = ["sourceRef", "action · reason · rule", "chars", "tokens"];
  const row = (one) => [h("code", {}, `${one.layer} ${one.sourceRef}`), h("code", {}, `${one.action} · ${one.reason} · ${one.rule}`),
    `${number(one.beforeChars)} → ${number(one.afterChars)}`, `${number(one.beforeTokens)} → ${number(one.afterTokens)}`];
  return [
    h("div", { id: "evidence", class: "scroll", tabindex: "0", role: "region", "aria-label": "trimEvidence" }, table(heads, rows.slice(0, all ? rows.length : SHOWN).map(row), [2, 3])),
    rows.length > SHOWN && !all ? button(string("showAll", rows.length), () => {
      all = true;
      showDeveloper(box);
    }, { class: "link" }) : null,
  ];
}
