// How a run stands and what the judge says of its output: which constraints it breaks, and where.

import { byId, fill, h } from "./dom.js";
import { spellError, word } from "./strings.js";

const SHOWN = 20;
let told = () => [];

/** Say it again, after the language has changed. */
export const repeatVerdict = () => fill(byId("verdict"), ...told());

export const tellRunning = () => tell(() => [word("running")]);

export const tellFailure = (error) => tell(() => [error.code === "CANCELED" ? word("stopped") : spellError(error)]);

/** Say what a run came to, and that nobody real wrote it if nobody did. */
export function tellVerdict({ provider, verdict }) {
  tell(() => [
    h("p", {}, summed(verdict)),
    listed(broken(verdict.violations)),
    listed(verdict.unchecked.map((one) => [one.constraint, ` — ${one.reason}`]), word("uncheckedWhy")),
    provider === "fake" ? h("p", { class: "faint" }, word("fake")) : null,
  ]);
}

/** `sentences` is a function, so that they can be said in another language. */
function tell(sentences) {
  told = sentences;
  repeatVerdict();
}

function summed({ violations, unchecked }) {
  const parts = [];
  if (violations.length) parts.push(word("violations", violations.length));
  if (unchecked.length) parts.push(word("unchecked", unchecked.length));
  return parts.join(" · ") || word("passed");
}

/** Each broken constraint once, with the words that break it. */
function broken(violations) {
  const quotes = new Map();
  for (const { constraint, quote } of violations) quotes.set(constraint, (quotes.get(constraint) ?? new Set()).add(quote));
  return [...quotes].map(([constraint, words]) => [constraint, ...[...words].filter(Boolean).flatMap((said) => [" ", h("mark", {}, said)])]);
}

function listed(rows, title) {
  if (!rows.length) return null;
  const list = h("ul", { class: "verdicts" }, ...rows.slice(0, SHOWN).map((row) => h("li", {}, ...row)));
  return title ? h("details", {}, h("summary", {}, title), list) : list;
}
