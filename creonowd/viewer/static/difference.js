// The difference between two assemblies: sources added, removed or changed, line by line.

import { LAYERS } from "./bars.js";
import { byId, capped, fill, h } from "./dom.js";
import { anchored, refButton } from "./fragments.js";
import { string } from "./strings.js";

const SHOWN = 60;
const LINES = 400;
const open = new Set();
let all = false;

/** Compare two assemblies source by source. */
export function difference(before, after) {
  return LAYERS.flatMap((layer) => {
    const old = new Map(anchored(before, layer).map((one) => [one.anchor, one]));
    const now = anchored(after, layer);
    const changed = now.map((is) => ({ layer, was: old.get(is.anchor), is })).filter(({ was, is }) => differs(was, is));
    const kept = new Set(now.map((one) => one.anchor));
    const removed = [...old.values()].filter((one) => !kept.has(one.anchor)).map((was) => ({ layer, was }));
    return [...changed, ...removed];
  });
}

const differs = (was, is) => !was || was.content !== is.content || was.action !== is.action;

/** Compare two texts line by line; return pairs of `" "`, `"-"` or `"+"` and a line. Long texts become two blocks. */
export function lineDifference(before, after) {
  const [old, now] = [before, after].map((text) => (text ? text.split("\n") : []));
  const same = (at, back) => (back ? old.at(-1 - at) === now.at(-1 - at) : old[at] === now[at]);
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && same(head, false)) head += 1;
  let tail = 0;
  while (tail < shorter - head && same(tail, true)) tail += 1;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  return [...edge(old.slice(0, head).slice(-2)), ...middle, ...edge(old.slice(old.length - tail).slice(0, 2))];
}

const edge = (lines) => lines.map((line) => [" ", line]);

function between(old, now) {
  const blocks = [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  if (!old.length || !now.length || old.length > LINES || now.length > LINES) return blocks;
  const common = commonLengths(old, now);
  const lines = [];
  let [from, to] = [0, 0];
  while (from < old.length || to < now.length) {
    if (from < old.length && to < now.length && old[from] === now[to]) {
      lines.push([" ", old[from]]);
      from += 1;
      to += 1;
    } else if (to >= now.length || (from < old.length && common[from + 1][to] >= common[from][to + 1])) {
      lines.push(["-", old[from]]);
      from += 1;
    } else {
      lines.push(["+", now[to]]);
      to += 1;
    }
  }
  return lines;
}

/** Make the table of the longest common subsequences of all tails. */
function commonLengths(old, now) {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let from = old.length - 1; from >= 0; from -= 1) {
    for (let to = now.length - 1; to >= 0; to -= 1) {
      rows[from][to] = old[from] === now[to] ? rows[from + 1][to + 1] + 1 : Math.max(rows[from + 1][to], rows[from][to + 1]);
    }
  }
  return rows;
}

/** Show how `result` differs from `before`, below a heading that says what `before` was. */
export function showDifference(before, result, title) {
  if (!before) return fill(byId("difference"), h("p", { class: "faint" }, string("noPrevious")));
  const rows = difference(before, result);
  const heading = h("p", { class: "faint" }, title);
  if (!rows.length) return fill(byId("difference"), heading, h("p", { class: "faint" }, string("noDifference")));
  const wider = () => {
    all = true;
    showDifference(before, result, title);
  };
  return fill(byId("difference"), heading, ...capped(rows, all ? rows.length : SHOWN, string("showAll"), (one) => entry(result, one), wider));
}

function entry(result, { layer, was, is }) {
  const kind = !was ? "added" : !is ? "removed" : "changed";
  const { sourceRef } = is ?? was;
  const moved = was && is && was.action !== is.action ? ` · ${string(was.action)} → ${string(is.action)}` : "";
  const tokens = `${was?.tokens ?? 0} → ${is?.tokens ?? 0} tokens${moved}`;
  const { anchor } = is ?? was;
  const lines = h("pre", { tabindex: "0", "aria-label": sourceRef, class: "lines" });
  const summary = h("summary", { "data-key": `change:${anchor}`, onclick: () => (summary.parentElement.open ? open.delete(anchor) : open.add(anchor)) },
    h("span", { class: `badge ${kind}` }, string(kind)), h("span", { class: "faint" }, string(layer)),
    h("span", { class: "ref" }, sourceRef), h("span", { class: "detail" }, tokens));
  const details = h("details", { class: "change", open: open.has(anchor), ontoggle: () => {
    if (details.open && !lines.childElementCount) lines.append(...lineDifference(was?.content ?? "", is?.content ?? "").map(line));
  } }, summary, lines, is ? refButton(result, sourceRef, layer) : null);
  return details;
}

function line([sign, text]) {
  const tag = { "+": "ins", "-": "del", " ": "span" }[sign];
  return h(tag, {}, `${sign} ${text}\n`);
}
