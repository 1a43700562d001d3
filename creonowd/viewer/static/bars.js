// The tokens of each layer beside its share and its minimum.

import { byId, fill, h } from "./dom.js";
import { string } from "./strings.js";

export const LAYERS = ["rules", "settings", "retrieved", "immediate"];
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;

export function showBars({ budget, layersDetail, totals }) {
  const total = budget.maxInputTokens;
  const layers = LAYERS.map((name) => meter(name, layersDetail[name], total));
  const fixed = { tokens: totals.fixedTokens };
  const sum = { tokens: totals.tokenCount, budgetTokens: total };
  fill(byId("bars"), ...layers, meter("fixed", fixed, total), meter("total", sum, total), legend());
}

function meter(name, { tokens, budgetTokens, minimumTokens = 0 }, total) {
  const detail = describe(tokens, budgetTokens, minimumTokens);
  const track = h("div", { class: "track", role: "meter", "aria-label": string(name), "aria-valuemin": "0",
    "aria-valuemax": String(total), "aria-valuenow": String(Math.min(tokens, total)), "aria-valuetext": detail });
  track.append(drawing(name, { tokens, budgetTokens, minimumTokens }, total));
  return h("div", { class: "meter", "data-meter": name }, h("span", {}, string(name)), track, h("span", { class: "detail" }, detail));
}

function describe(tokens, share, minimum) {
  if (share === undefined) return String(tokens);
  const left = share - tokens;
  const parts = [`${tokens} / ${share}`, left < 0 ? string("overShare", -left) : string("leftOf", left)];
  return [...parts, ...(minimum ? [`${string("minimum")} ${minimum}`] : [])].join(" · ");
}

function drawing(name, { tokens, budgetTokens, minimumTokens }, total) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} 14`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const at = (value) => Math.min(1, value / total) * WIDTH;
  if (budgetTokens !== undefined && name !== "total") svg.append(bar("share", 0, at(budgetTokens), 0, 14));
  svg.append(bar(`fill-${name}`, 0, at(tokens), 3, 8));
  if (minimumTokens) svg.append(tick(Math.min(WIDTH - 2, at(minimumTokens))));
  return svg;
}

const bar = (kind, x, width, y, height) => shape("rect", { class: kind, x, y, width, height });
const tick = (x) => shape("line", { class: "minimum", x1: x, x2: x, y1: 0, y2: 14, "vector-effect": "non-scaling-stroke" });

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function legend() {
  const entry = (kind) => h("span", {}, h("i", { class: `key ${kind}` }), string(kind));
  return h("p", { class: "legend", "aria-hidden": "true" }, entry("used"), entry("share"), entry("minimum"));
}
