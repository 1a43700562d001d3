// The four layers: every fragment, and why it is in the prompt or not; search, copy, jump.

import { LAYERS } from "./bars.js";
import { byId, byKey, capped, fill, h, marked } from "./dom.js";
import { codeText, reason, string } from "./strings.js";

const SHOWN = 40;
const PREVIEW = 80;
const FRONT_MATTER = /^---\n[^]*?\n---\n/;
export const TONE = { kept: "good", trimmed: "warn", dropped: "bad" };
const open = new Map();
const wide = new Set();
const anchorSets = new WeakMap();
let shown = null;

/** Show the layers of an assembly; what was open stays open. */
export function showLayers(result) {
  shown = result;
  const query = byId("search").value.trim();
  const found = LAYERS.map((name) => anchored(result, name).filter((one) => matches(one, query)));
  fill(byId("layers"), ...LAYERS.map((name, at) => section(name, result.layersDetail[name], found[at], query)));
  fill(byId("places"), ...found.flat().map((one) => h("option", { value: placeName(one), label: preview(one.content, 24) })));
  byId("found").textContent = query ? string("found", found.flat().length) : "";
}

/** Give every fragment an anchor of its own; two of one source differ by their number. */
export function anchored(result, name) {
  const seen = new Map();
  return result.layersDetail[name].fragments.map((fragment) => {
    const nth = seen.get(fragment.sourceRef) ?? 0;
    seen.set(fragment.sourceRef, nth + 1);
    return { ...fragment, layer: name, nth, anchor: `${name}:${fragment.sourceRef}:${nth}` };
  });
}

/** A button that leads to the fragment of a source; plain text if there is none. */
export function refButton(result, sourceRef, layer) {
  const anchors = (layer ? [layer] : LAYERS).map((name) => `${name}:${sourceRef}:0`);
  const found = anchors.find((anchor) => anchorsOf(result).has(anchor));
  if (!found) return h("span", { class: "ref" }, sourceRef);
  return h("button", { type: "button", class: "quiet ref", onclick: () => reveal(found) }, sourceRef);
}

function anchorsOf(result) {
  if (!anchorSets.has(result)) anchorSets.set(result, new Set(LAYERS.flatMap((name) => anchored(result, name)).map((one) => one.anchor)));
  return anchorSets.get(result);
}

/** Open a fragment, bring it into view and give it the focus. */
export function reveal(anchor) {
  open.set(anchor, true);
  if (!byKey(anchor)) {
    byId("search").value = "";
    wide.add(anchor.split(":", 1)[0]);
  }
  showLayers(shown);
  byKey(anchor)?.focus({ preventScroll: true });
  byKey(anchor)?.scrollIntoView({ block: "center" });
}

function section(name, layer, fragments, query) {
  const all = () => {
    wide.add(name);
    showLayers(shown);
  };
  const limit = wide.has(name) ? fragments.length : SHOWN;
  const nothing = h("p", { class: "faint" }, string(query ? "noMatch" : "empty"));
  return h("section", { class: "layer", "data-layer": name, "data-testid": `ai-context-layer-${name}`, "aria-labelledby": `layer-${name}` },
    h("h3", { id: `layer-${name}` }, string(name), h("span", { class: "badge" }, `${layer.tokens} tokens`),
      layer.truncated ? h("span", { class: "badge warn" }, string("truncated")) : null),
    layer.warnings?.length ? h("ul", { class: "warnings" }, ...layer.warnings.map((one) => h("li", {}, codeText(one)))) : null,
    ...(fragments.length ? capped(fragments, limit, string("showAll"), (one) => box(one, query), all) : [nothing]));
}

function matches(fragment, query) {
  const low = query.toLowerCase();
  return fragment.sourceRef.toLowerCase().includes(low) || fragment.content.toLowerCase().includes(low);
}

const placeName = ({ layer, nth, sourceRef }) => `${string(layer)} · ${sourceRef}${nth ? ` (${nth + 1})` : ""}`;

/** Go to the fragment with this name in the list of places; return whether there is one. */
export function jump(name) {
  const found = LAYERS.flatMap((layer) => anchored(shown, layer)).find((one) => placeName(one) === name);
  if (found) reveal(found.anchor);
  return Boolean(found);
}

function box(fragment, query) {
  const { action, anchor, content, sourceRef } = fragment;
  const isOpen = Boolean(query) || (open.get(anchor) ?? content.includes("***REDACTED***"));
  const summary = h("summary", { "data-key": anchor, onclick: () => open.set(anchor, !summary.parentElement.open) },
    h("span", { class: "ref" }, ...marked(sourceRef, query)),
    h("span", { class: "preview" }, preview(content, PREVIEW)),
    h("span", { class: `badge ${TONE[action]}` }, string(action)),
    h("span", { class: "detail" }, `${fragment.tokens} tokens`),
    h("span", { class: "reason" }, explanation(fragment), " ", h("code", {}, fragment.rule)));
  const body = content ? [h("pre", { tabindex: "0", "aria-label": sourceRef }, ...marked(content, query)), copyButton(content, anchor)] : [];
  return h("details", { class: `fragment ${action}`, open: isOpen }, summary, ...body);
}

function explanation(fragment) {
  const parts = [reason(fragment.rule, fragment.action)];
  const ranked = ["score", "confidence", ...(fragment.layer === "rules" ? ["priority"] : [])];
  for (const name of ranked) {
    if (fragment[name] !== undefined) parts.push(`${string(name)} ${Number(fragment[name].toFixed(2))}`);
  }
  if (fragment.fitsWith !== undefined) parts.push(string("fitsWith", fragment.fitsWith));
  return parts.join(" · ");
}

function preview(text, length) {
  const line = text.slice(0, 16 * length).replace(FRONT_MATTER, "").slice(0, 8 * length).replace(/\s+/g, " ").trim();
  const head = Array.from(line.slice(0, 2 * length)).slice(0, length).join("");
  return head.length < line.length ? `${head}…` : head;
}

function copyButton(text, anchor) {
  const button = h("button", { type: "button", class: "quiet", "data-key": `${anchor}:copy`, onclick: async () => {
    const copied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    button.textContent = string(copied ? "copied" : "copyFailed");
  } }, string("copy"));
  return button;
}
