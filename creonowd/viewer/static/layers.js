// The four layers: how full each is, and every fragment with the reason it is in or out.

import { byId, capped, fill, h, marked } from "./dom.js";
import { word } from "./words.js";

export const LAYERS = ["rules", "settings", "retrieved", "immediate"];
const SHOWN = 40;
const TONE = { kept: "good", trimmed: "warn", dropped: "bad" };
const SVG = "http://www.w3.org/2000/svg";

export function showBars(result) {
  const total = result.budget.maxInputTokens;
  const rows = LAYERS.map((name) => {
    const layer = result.layersDetail[name];
    const told = `${layer.tokens} · ${word("share")} ${layer.budgetTokens} · ${word("minimum")} ${layer.minimumTokens}`;
    return meter(word(name), `--${name}`, layer.tokens, total, [layer.budgetTokens, layer.minimumTokens], told);
  });
  const { fixedTokens, tokenCount, leftTokens } = result.totals;
  const told = `${tokenCount}${word("of")}${total} · ${leftTokens} ${word("left")}`;
  fill(byId("bars"), ...rows, meter(word("fixed"), "--fixed", fixedTokens, total, [], String(fixedTokens)),
    meter(word("total"), "--accent", tokenCount, total, [], told));
}

function meter(name, colour, value, total, ticks, told) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 1000 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.append(bar(0, Math.min(1, value / total), `var(${colour})`));
  for (const tick of ticks) if (tick > 0) svg.append(bar(Math.min(0.997, tick / total), 0.003, "var(--ink)"));
  const track = h("div", { class: "track", role: "meter", "aria-label": name, "aria-valuemin": "0", "aria-valuemax": String(total), "aria-valuenow": String(value) });
  track.append(svg);
  return h("div", { class: "meter" }, h("span", {}, name), track, h("span", { class: "told" }, told));
}

function bar(from, width, colour) {
  const rect = document.createElementNS(SVG, "rect");
  for (const [key, value] of Object.entries({ x: from * 1000, y: 0, width: width * 1000, height: 10, fill: colour })) rect.setAttribute(key, value);
  return rect;
}

/** Show every fragment that matches the search; tell how many there are. */
export function showLayers(result, sought) {
  let found = 0;
  const jumps = [];
  const sections = LAYERS.map((name) => {
    const layer = result.layersDetail[name];
    const fragments = layer.fragments.map((fragment, at) => ({ ...fragment, anchor: `${name}-${at}` })).filter((one) => matches(one, sought));
    found += fragments.length;
    jumps.push(...fragments.slice(0, SHOWN));
    return h("section", { class: "layer", "data-layer": name, "data-testid": `ai-context-layer-${name}` },
      h("h3", {}, word(name), h("span", { class: "badge" }, `${layer.tokens} tokens`),
        layer.truncated ? h("span", { class: "badge warn" }, word("truncated")) : null),
      layer.warnings?.length ? h("ul", { class: "warnings" }, ...layer.warnings.map((one) => h("li", {}, one))) : null,
      fragments.length ? capped(fragments, SHOWN, word("showAll"), (one) => fragmentBox(one, sought)) : h("p", { class: "faint" }, word("empty")));
  });
  fill(byId("layers"), ...sections);
  fill(byId("jumps"), ...jumps.map(jump));
  byId("found").textContent = sought ? String(found) : "";
}

function matches(fragment, sought) {
  if (!sought) return true;
  const low = sought.toLowerCase();
  return fragment.sourceRef.toLowerCase().includes(low) || fragment.content.toLowerCase().includes(low);
}

function jump(fragment) {
  return h("button", { type: "button", class: "quiet", onclick: () => {
    const box = byId(fragment.anchor);
    box.open = true;
    box.scrollIntoView({ block: "center" });
    box.querySelector("summary").focus();
  } }, fragment.sourceRef);
}

function fragmentBox(fragment, sought) {
  const why = [fragment.rule];
  for (const name of ["score", "confidence", "priority"]) {
    if (fragment[name] !== undefined) why.push(`${word(name)} ${round(fragment[name])}`);
  }
  if (fragment.fitsWith !== undefined) why.push(word("fitsWith", fragment.fitsWith));
  const copy = h("button", { type: "button", class: "quiet", onclick: async () => {
    await navigator.clipboard.writeText(fragment.content);
    copy.textContent = word("copied");
  } }, word("copy"));
  return h("details", { class: `fragment ${fragment.action}`, id: fragment.anchor, open: Boolean(sought) || fragment.content.includes("***REDACTED***") },
    h("summary", {}, h("span", { class: "ref" }, ...marked(fragment.sourceRef, sought)),
      h("span", { class: `badge ${TONE[fragment.action]}` }, word(fragment.action)),
      h("span", { class: "told" }, `${fragment.tokens} tokens`), h("span", { class: "faint" }, why.join(" · "))),
    h("pre", { tabindex: "0" }, ...marked(fragment.content, sought)), copy);
}

function round(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}
