// What changed since last time: pieces that came, left or changed, line by line.

import { byId, button, fill, h, patch } from "./dom.js";
import { compareFrom, inspection } from "./inspection.js";
import { locale, string, time } from "./language.js";
import { isIn, nameOf, piecesOf } from "./pieces.js";
import { signal } from "./signals.js";

const SHOWN = 60;
const LONGEST = 400;
let all = false;

/** Compare two prompts piece by piece; what is left out counts as not there. */
export function difference(before, after) {
  const old = new Map(piecesOf(before).filter(isIn).map((one) => [one.address, one]));
  const now = new Map(piecesOf(after).filter(isIn).map((one) => [one.address, one]));
  const changed = [...now.values()].filter((is) => old.get(is.address)?.content !== is.content).map((is) => ({ was: old.get(is.address), is }));
  const removed = [...old.values()].filter((was) => !now.has(was.address)).map((was) => ({ was }));
  return [...changed, ...removed];
}

/** Return what changed since the last run or, before the first, since the page was opened. */
export function sinceLastTime() {
  const { baseline, shown } = inspection;
  return baseline && shown && baseline !== shown ? difference(baseline.result, shown.result) : [];
}

export function showSince() {
  const box = byId("since");
  const { baseline, baselineIs } = inspection;
  if (!box.firstElementChild) box.append(h("p", { class: "since-head" }), h("div", { class: "pieces" }), h("div", { class: "more" }));
  const rows = sinceLastTime();
  fill(box.children[0], string(`since ${baselineIs}`, time(baseline.at)), " ",
    rows.length ? button(string("compareFromHere"), () => {
      compareFrom(inspection.shown, "marked");
      signal("inspected", "author");
    }, { class: "link" }) : null);
  const listed = all ? rows : rows.slice(0, SHOWN);
  patch(box.children[1], listed, { key: keyOf, sign: (one) => JSON.stringify([one.was?.content, one.is?.content, locale()]), render: entry });
  fill(box.children[2], rows.length ? null : h("p", { class: "faint" }, string("noDifference")),
    listed.length < rows.length ? button(string("showAll", rows.length), () => {
      all = true;
      showSince();
    }, { class: "link" }) : null);
}

const keyOf = ({ was, is }) => (is ?? was).address;

function entry({ was, is }) {
  const kind = !was ? "added" : !is ? "removed" : "changed";
  const piece = is ?? was;
  const lines = h("pre", { tabindex: "0", "aria-label": nameOf(piece), class: "lines" });
  const details = h("details", { ontoggle: () => {
    if (details.open && !lines.childElementCount) lines.append(...lineDifference(was?.content ?? "", is?.content ?? "").map(line));
  } },
  h("summary", {}, h("span", { class: "piece-head" }, h("span", { class: "piece-name" }, nameOf(piece)), h("span", { class: `badge ${kind}` }, string(kind)),
    h("span", { class: "number" }, string("tokensFromTo", was?.tokens ?? 0, is?.tokens ?? 0)))), lines);
  return h("article", { class: `piece change ${piece.layer}` }, details);
}

function line([sign, text]) {
  return h({ "+": "ins", "-": "del", " ": "span" }[sign], {}, `${sign} ${text}\n`);
}

/** Compare two texts line by line; return pairs of `" "`, `"-"` or `"+"` and a line. Long texts become two blocks. */
function lineDifference(before, after) {
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
  if (!old.length || !now.length || old.length > LONGEST || now.length > LONGEST) return blocks;
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
