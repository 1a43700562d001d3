// The headline: one sentence on what the model sees and what it does not, each part a link; secrets and cost below it.

import { subjectOf } from "./bookMap.js";
import { byId, button, fillChanged, h } from "./dom.js";
import { inspection, isTooLarge } from "./inspection.js";
import { isChinese, listing, meaning, parts, sentenceGap, string } from "./language.js";
import { select } from "./manuscript.js";
import { nameOf, pieceOf } from "./pieces.js";
import { address, place } from "./place.js";
import { skillName } from "./run.js";
import { onSignal, signal } from "./signals.js";

const RUNS = 4;
let allNotices = false;

/** Show the sentence and what belongs below it. */
export function showHeadline() {
  const result = isTooLarge() ? null : inspection.shown?.result;
  if (!result) {
    fillChanged(byId("headline"), isTooLarge(), () => (isTooLarge() ? [string("headlineTooLarge")] : []));
    fillChanged(byId("asides"), null, () => []);
    return;
  }
  const { coverage, redactionEvidence, inspectMeta, stablePrefixUnchanged, prefixChange, cacheBreakPoints } = result;
  if (coverage?.headline) fillChanged(byId("headline"), [coverage, skillName(coverage.headline.skillId)], () => sentence(coverage.headline, result));
  const faults = result.notices.map((one) => [one, subjectOf(one.sourceRef)?.problem]);
  fillChanged(byId("asides"), [redactionEvidence, inspectMeta.whatIf, stablePrefixUnchanged, prefixChange, cacheBreakPoints, faults, allNotices],
    () => [secrets(result), cost(result), ...notices(result)]);
}

/** Parts of the sentence with fewer characters than this stay on one line. */
const unbrokenBelow = () => (isChinese() ? 9 : 14);

/** Make a part of the sentence a link; unlike a button it breaks across lines as text does, unless it is short. */
const link = (text, work) => h("a", { class: text.length < unbrokenBelow() ? "link short" : "link", href: address(), onclick: (event) => {
  event.preventDefault();
  work();
} }, text);

function sentence(headline, result) {
  const skill = skillName(headline.skillId) || headline.skillName || string("general");
  const seen = seenParts(headline, result);
  const unseen = unseenParts(headline, result);
  if (!seen.length && !unseen.length) return parts("headlineNothing", h("em", {}, skill));
  const first = parts(...(seen.length ? ["headlineSees", h("em", {}, skill), inList(seen)] : ["headlineNothing", h("em", {}, skill)])).flat();
  const negated = unseen.flatMap((one, at) => (at ? [string("nor"), one] : [one]));
  const second = unseen.length ? parts("headlineNot", negated).flat() : [string(result.coverage.documents.every(isWhole) ? "headlineAll" : "headlineParts")];
  return [...first, sentenceGap(), ...second];
}

/** Whether a document hides nothing from the model that lies before the cursor. */
const isWhole = ({ place: where, ranges }) => where !== "before" || ranges.every((one) => ["seen", "front_matter"].includes(one.state));

/** Put links into a list that the language joins: each stands where its placeholder stood. */
function inList(links) {
  const marks = links.map((_, at) => `\u0000${at}\u0000`);
  return listing(marks).split(/\u0000(\d+)\u0000/).map((part, at) => (at % 2 ? links[part] : part));
}

function seenParts({ wordsBefore, wordsAfter, people, notes, rules, passages, passageChapters, toldChapters, previousWords }, result) {
  const tab = (layer) => () => signal("layer", layer);
  return [
    wordsBefore.seen ? link(string("lastWords", wordsBefore.seen), () => toText(result, "seen")) : null,
    wordsAfter?.seen ? link(string("nextWords", wordsAfter.seen), tab("immediate")) : null,
    previousWords ? link(string("previousWords", previousWords), tab("retrieved")) : null,
    people ? link(string("people", people), tab("rules")) : null,
    notes ? link(string("notes", notes), tab("settings")) : null,
    rules ? link(string("ruleCount", rules), tab("rules")) : null,
    passages ? link(string("passagesFrom", string("passages", passages), string("ofChapters", passageChapters)), tab("retrieved")) : null,
    toldChapters ? link(string("storyOfChapters", toldChapters), tab("retrieved")) : null,
  ].filter(Boolean);
}

function unseenParts({ wordsBefore, unseen = [] }, result) {
  return [
    wordsBefore.notSeen ? link(string("firstWords", wordsBefore.notSeen), () => toText(result, "unseen")) : null,
    unseen.length ? link(runsOf(unseen), () => signal("ask", unseen[0].first)) : null,
  ].filter(Boolean);
}

function runsOf(unseen) {
  const runs = unseen.map(runOf);
  if (runs.length > RUNS) return string("chapterRunsMore", runs.slice(0, RUNS).join(string("comma")));
  return string(unseen.length === 1 && unseen[0].count === 1 ? "chapterRun" : "chapterRuns", listing(runs));
}

const runOf = ({ firstNumber, lastNumber, count }) => (count === 1 ? String(firstNumber) : `${firstNumber}–${lastNumber}`);

/** Go to where the text begins that the model sees, or to the last of what it does not. */
function toText(result, kind) {
  const here = result.coverage.documents.find((one) => one.documentId === place.documentId);
  const seen = here?.ranges.find((one) => one.state === "seen");
  if (!seen) return signal("tab", "left-out");
  signal("pane", "text");
  return select(kind === "seen" ? seen.from : Math.max(0, here.ranges.find((one) => one.state !== "front_matter")?.from ?? 0));
}

/** Show which secrets were kept out of the prompt, by the kind that an author knows. */
function secrets({ redactionEvidence }) {
  if (!redactionEvidence.length) return null;
  const count = redactionEvidence.reduce((sum, one) => sum + one.matchCount, 0);
  const kinds = [...new Set(redactionEvidence.map((one) => secretName(one.patternId)))].slice(0, 3);
  const files = [...new Set(redactionEvidence.map((one) => one.sourceRef))];
  return h("p", { class: "aside secrets", id: "secrets" }, string("secretsOut", count), sentenceGap(),
    string("secretsWhere", listing(kinds), listing(files.slice(0, 2).map((one) => one.replace(/^.*\//, "")))));
}

const VENDORS = { openai: "OpenAI", aws: "AWS", github: "GitHub", gitlab: "GitLab", huggingface: "Hugging Face", xai: "xAI", npm: "npm", pypi: "PyPI" };

/** Name a kind of secret for a person: "a key of OpenAI", "a path on your computer". */
function secretName(patternId) {
  if (patternId.endsWith("_abs_path")) return string("secretPath");
  if (/password|passphrase|credential|pin$/.test(patternId)) return string("secretPassword");
  if (/email|phone|identity|bank_card/.test(patternId)) return string("secretContact");
  const [vendor] = patternId.split("_");
  const isVendor = /_(key|token|sk|id|pat|gho|secret|url|sess)/.test(patternId) && !/^(labelled|secret|json|session|private|random|otp|age|access|api|bearer|webhook|request|configured)/.test(patternId);
  return isVendor ? string("secretKey", VENDORS[vendor] ?? vendor[0].toUpperCase() + vendor.slice(1)) : string("secretOther");
}

/** Show what the next call reads anew; what a cache really held is known only after a run. */
function cost({ inspectMeta, stablePrefixUnchanged, prefixChange, cacheBreakPoints }) {
  const start = cacheBreakPoints.find(({ after }) => after === "systemPrompt");
  const aside = (kind, text) => h("p", { class: "aside cost", id: "cost", "data-prefix": kind }, text);
  if (inspectMeta.whatIf || !start) return aside("none", "");
  if (prefixChange) return aside("changed", string("readAnew", changeName(prefixChange), start.tokens));
  if (!stablePrefixUnchanged) return aside("first", string("nothingSent"));
  return aside("unchanged", start.reachesMinimum ? string("startReused", start.tokens) : string("startShort", start.tokens, start.minimumTokens));
}

function changeName({ sourceRef }) {
  const { result } = inspection.shown;
  const found = pieceOf(result, sourceRef) ?? { sourceRef };
  return nameOf({ content: "", ...found });
}

/** What the daemon warns of, as sentences; what they are about is a link. The first is shown, the others on request. */
function notices(result) {
  const shown = allNotices ? result.notices : result.notices.slice(0, 1);
  const more = result.notices.length - shown.length;
  const rest = more ? button(string("moreNotices", more), () => {
    allNotices = true;
    showHeadline();
  }, { class: "link" }) : null;
  return [...shown.map((one) => notice(one, result)), rest];
}

function notice({ code, message, sourceRef, layer, details }, result) {
  const about = sourceRef && pieceOf(result, sourceRef);
  const subject = sourceRef && subjectOf(sourceRef);
  const target = subject?.problem ? link(string(subject.line ? "fixFileAt" : "fixFile", subject.line), () => signal("fix", { path: sourceRef, line: subject.line })) : about ? link(nameOf(about), () => signal("piece", about.address)) : layer ? link(string(layer), () => signal("layer", layer)) : null;
  return h("p", { class: "aside warning", "data-code": code }, noticeText({ code, message, sourceRef, layer, details }), " ", target);
}

/** Return a warning of the daemon as a sentence; what follows the code begins with a small letter and may be a mere name. */
function noticeText({ code, message, sourceRef, layer, details }) {
  if (code === "CONTEXT_MINIMUM_UNMET" && details) return string("minimumUnmet", string(layer), details.tokens, details.minimumTokens);
  if (!message || message === sourceRef) return [meaning(code), message && `(${message})`].filter(Boolean).join(" ");
  const text = /^[a-z]+[ ,;]/.test(message) ? message[0].toUpperCase() + message.slice(1) : message;
  return /[.!?。！？…)）]$/u.test(text) ? text : text + string("fullStop");
}

onSignal(["inspected", "failed", "language"], showHeadline);
