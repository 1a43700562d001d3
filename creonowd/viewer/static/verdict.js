// The state of a run and the judge's verdict: which constraints the output breaks, and where.

import { byId, fill, h } from "./dom.js";
import { errorText, string } from "./strings.js";

const SHOWN = 20;
let contents = () => [];

/** Show the verdict again, after the language has changed. */
export const showVerdict = () => fill(byId("verdict"), ...contents());

export const setRunning = () => setContents(() => [string("running")]);

export const setFailure = (error) => setContents(() => [error.code === "CANCELED" ? string("stopped") : errorText(error)]);

/** Set the verdict of a finished run, with a note if the fake provider wrote the output. */
export function setVerdict({ provider, usage, verdict }) {
  const { cacheReadTokens, inputTokens } = usage;
  setContents(() => [
    h("p", {}, summary(verdict)),
    inputTokens === undefined ? null : h("p", { class: "faint" }, string("readFromCache", cacheReadTokens, inputTokens)),
    list(violationRows(verdict.violations)),
    list(verdict.unchecked.map((one) => [one.constraint, ` — ${one.reason}`]), string("uncheckedWhy")),
    provider === "fake" ? h("p", { class: "faint" }, string("fake")) : null,
  ]);
}

/** `render` is a function, so that the verdict can be shown in another language. */
function setContents(render) {
  contents = render;
  showVerdict();
}

function summary({ violations, unchecked }) {
  const parts = [];
  if (violations.length) parts.push(string("violations", violations.length));
  if (unchecked.length) parts.push(string("unchecked", unchecked.length));
  return parts.join(" · ") || string("passed");
}

/** List each broken constraint once, with the quotes that break it. */
function violationRows(violations) {
  const quotes = new Map();
  for (const { constraint, quote } of violations) quotes.set(constraint, (quotes.get(constraint) ?? new Set()).add(quote));
  return [...quotes].map(([constraint, found]) => [constraint, ...[...found].filter(Boolean).flatMap((quote) => [" ", h("mark", {}, quote)])]);
}

function list(rows, title) {
  if (!rows.length) return null;
  const items = h("ul", { class: "verdicts" }, ...rows.slice(0, SHOWN).map((row) => h("li", {}, ...row)));
  return title ? h("details", {}, h("summary", {}, title), items) : items;
}
