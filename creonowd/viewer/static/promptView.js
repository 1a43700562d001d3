// The prompt itself: the exact text in order, its layers as colours, cache marks as lines, secrets as black bars.

import { button, byId, copyButton, fill, h, withBars } from "./dom.js";
import { inspection } from "./inspection.js";
import { string } from "./language.js";
import { nameOf, pieceOf } from "./pieces.js";
import { onSignal, signal } from "./signals.js";

let query = "";
let shownText = "";
let at = 0;
let wanted = null;

/** Show the prompt; it is asked for only while its tab is open. */
export function showPrompt() {
  const box = byId("prompt");
  const { result } = inspection.shown;
  if (!result.prompt) return fill(box, h("p", { class: "faint" }, string("loading")));
  if (!box.querySelector(".prompt-tools")) fill(box, tools(), h("div", { class: "prompt-text" }));
  const key = JSON.stringify([result.promptHash, query, document.documentElement.lang]);
  const text = box.querySelector(".prompt-text");
  if (key === shownText && text.firstElementChild) return showWanted();
  shownText = key;
  fill(text, ...blocks(result));
  return showWanted();
}

/** Bring the span into view that an answer quotes. */
function showWanted() {
  if (wanted === null) return;
  const found = [...byId("prompt").querySelectorAll(".span")].findLast((one) => Number(one.dataset.from) <= wanted);
  wanted = null;
  found?.classList.add("quoted");
  found?.scrollIntoView({ block: "center" });
}

onSignal("prompt-at", (position) => {
  wanted = position;
  signal("pane", "sees");
  signal("tab", "prompt");
  if (inspection.shown?.result.prompt) showWanted();
});

function tools() {
  const field = h("input", { type: "search", class: "find", "data-find": "prompt", "aria-label": string("findPrompt"), placeholder: string("findPrompt"), value: query,
    oninput: () => {
      query = field.value;
      at = 0;
      showPrompt();
      step(0);
    },
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } });
  return h("div", { class: "prompt-tools finder" }, field, h("kbd", { "aria-hidden": "true" }, "/"), h("output", { class: "found" }),
    copyButton(string("copyPrompt"), () => inspection.shown.result.prompt.text, { class: "small", done: string("copied"), failed: string("copyFailed") }));
}

/** Go to the next match, or to the one before. */
function step(by) {
  const found = [...byId("prompt").querySelectorAll("mark")];
  byId("prompt").querySelector(".found").textContent = query ? string("matches", found.length) : "";
  if (!found.length) return;
  at = (at + by + found.length) % found.length;
  found.forEach((one, nth) => one.classList.toggle("now", nth === at));
  found[at].scrollIntoView({ block: "center" });
}

function blocks(result) {
  const { text, spans, breakPoints } = result.prompt;
  const made = [];
  for (const span of spans) {
    let from = span.from;
    for (const mark of breakPoints.filter((one) => one.at > span.from && one.at < span.to)) {
      made.push(block(result, span, text.slice(from, mark.at), from), cacheLine(mark));
      from = mark.at;
    }
    made.push(block(result, span, text.slice(from, span.to), from));
    made.push(...breakPoints.filter((one) => one.at === span.to).map(cacheLine));
  }
  return made;
}

function block(result, span, text, from) {
  const isFirst = from === span.from;
  const piece = span.sourceRef ? pieceOf(result, span.sourceRef) : null;
  const name = piece ? nameOf(piece) : string(span.layer === "frame" ? "fixed" : span.layer);
  const label = `${name} · ${string("tokens", span.tokens)}`;
  return h("div", { class: `span ${span.layer}`, "data-layer": span.layer, "data-from": String(from) },
    isFirst ? h("p", { class: "span-head" }, piece ? button(name, () => signal("piece", piece.address), { class: "link" }) : span.layer === "frame" ? "" : name, h("span", { class: "number" }, string("tokens", span.tokens))) : null,
    h("div", { class: "span-text", title: label }, ...withMatches(text)));
}

/** Mark what is searched for; secrets stay black. */
function withMatches(text) {
  if (!query) return withBars(text);
  const literal = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.split(new RegExp(`(${literal})`, "giu")).flatMap((part, nth) => (nth % 2 ? [h("mark", {}, part)] : withBars(part)));
}

function cacheLine({ tokens, reachesMinimum }) {
  return h("p", { class: `cache-line ${reachesMinimum ? "" : "short"}`, role: "separator" }, string(reachesMinimum ? "cacheLine" : "cacheLineShort", tokens));
}
