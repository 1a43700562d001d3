// The manuscript in an editor: a real caret and selection, what the model does not see dimmed, known names underlined.

import { defaultKeymap, history, historyKeymap, invertedEffects } from "@codemirror/commands";
import { openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, WidgetType } from "@codemirror/view";

import { byId, changeBetween } from "./dom.js";
import { string } from "./language.js";
import { signal } from "./signals.js";

const fromOutside = Annotation.define();
const setCoverage = StateEffect.define();
const setNames = StateEffect.define();
const setAnswer = StateEffect.define();
const setReturns = StateEffect.define();
/** An answer that the author takes into the text, or out of it again; it is part of what can be undone there. */
const setTaken = StateEffect.define({ map: (taken, changes) => ({ ...taken, ...moveRange(taken, changes) }) });
const wording = new Compartment();

let view = null;

/** Where the file has carriage returns, which the editor does not count. */
const returns = StateField.define({
  create: () => [],
  update: (value, transaction) => {
    for (const effect of transaction.effects) if (effect.is(setReturns)) return effect.value;
    if (!transaction.docChanged || !value.length) return value;
    return value.filter((at) => !isDeleted(transaction.changes, at)).map((at) => transaction.changes.mapPos(at, 1));
  },
});

const isDeleted = (changes, at) => changes.mapPos(at, 1) === changes.mapPos(at + 1, -1);

/** Marks that move with the text until new ones are set. */
function marks(effectType, make) {
  return StateField.define({
    create: () => Decoration.none,
    update: (value, transaction) => {
      for (const effect of transaction.effects) if (effect.is(effectType)) return make(effect.value, transaction.state);
      return value.map(transaction.changes);
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}

const coverage = marks(setCoverage, (ranges, state) => Decoration.set(
  ranges.map(({ from, to, state: seen }) => ({ from: toEditor(state, from), to: toEditor(state, to), seen }))
    .filter(({ from, to, seen }) => from < to && to <= state.doc.length && seen !== "seen")
    .map(({ from, to, seen }) => Decoration.mark({ class: `unseen-text ${seen}` }).range(from, to)),
  true,
));

const names = marks(setNames, (found, state) => Decoration.set(
  found.map((one) => ({ ...one, from: toEditor(state, one.from), to: toEditor(state, one.to) }))
    .filter(({ from, to }) => from < to && to <= state.doc.length)
    .map(({ from, to, state: seen, sourceRef }) => Decoration.mark({
      class: `name ${seen}`,
      attributes: { "data-source": sourceRef, title: string("openCard") },
    }).range(from, to)),
  true,
));

/** Return where a range lies after changes; what is typed at its edges is no part of it. */
function moveRange(range, changes) {
  const from = changes.mapPos(range.from, 1);
  return { from, to: Math.max(from, changes.mapPos(range.to, -1)) };
}

/** Where answers stand that were taken, with what stood there before. */
const takenAnswers = StateField.define({
  create: () => [],
  update: (value, transaction) => {
    const kept = value.map((one) => ({ ...one, ...moveRange(one, transaction.changes) }));
    return transaction.effects.filter((effect) => effect.is(setTaken)).reduce((all, { value: one }) => [...all.filter(({ runId }) => runId !== one.runId), ...(one.isTaken ? [one] : [])], kept);
  },
});

/** Undoing in the text also undoes that an answer was taken, and redoing takes it again. */
const takenIsUndone = invertedEffects.of(({ effects }) => effects.filter((one) => one.is(setTaken)).map(({ value }) => setTaken.of({ ...value, isTaken: !value.isTaken })));

/** The answer of a run moves with the text around it; what it would replace is struck out. */
const answers = StateField.define({
  create: () => Decoration.none,
  update: (value, transaction) => {
    const moved = value.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setAnswer)) return effect.value ? answerAt(effect.value, spot(moved), transaction.state) : Decoration.none;
    return moved;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function answerAt(answer, before, { doc }) {
  const { from, to } = before ?? answer;
  const end = Math.min(to, doc.length);
  const struck = from < end ? [Decoration.mark({ class: "replaced" }).range(from, end)] : [];
  return Decoration.set([...struck, Decoration.widget({ widget: new AnswerWidget(answer), side: 1 }).range(end)], true);
}

/** Return the range that an answer stands for, or null if there is none. */
function spot(decorations) {
  const found = [];
  for (const cursor = decorations.iter(); cursor.value; cursor.next()) found.push(cursor.from, cursor.to);
  return found.length ? { from: Math.min(...found), to: Math.max(...found) } : null;
}

/** What a run wrote, shown at the caret without being part of the text. */
class AnswerWidget extends WidgetType {
  constructor(answer) {
    super();
    this.answer = answer;
  }

  eq({ answer }) {
    return answer.text === this.answer.text && answer.runId === this.answer.runId && answer.broken === this.answer.broken;
  }

  toDOM() {
    const element = document.createElement("span");
    element.dataset.testid = "ai-output";
    this.updateDOM(element);
    return element;
  }

  updateDOM(element) {
    const { text, runId, broken = [] } = this.answer;
    element.className = `answer-text ${runId ? "done" : "writing"}`;
    if (runId) element.dataset.run = runId;
    else element.removeAttribute("data-run");
    element.replaceChildren(...brokenParts(text, broken));
    return true;
  }

  ignoreEvent() {
    return true;
  }
}

/** Split an answer where a rule is broken; each such part says which rule. */
function brokenParts(text, broken) {
  const found = broken.filter(({ from, to }) => from < to && to <= text.length).sort((one, two) => one.from - two.from);
  const parts = [];
  let at = 0;
  for (const { from, to, constraint } of found) {
    if (from < at) continue;
    const mark = document.createElement("mark");
    mark.title = constraint;
    mark.append(text.slice(from, to));
    parts.push(text.slice(at, from), mark);
    at = to;
  }
  return [...parts, text.slice(at)];
}

/** How it looks; it lives in a shadow root, so only the page's colours reach it. */
const THEME = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "transparent", fontSize: "var(--reading-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--serif)", lineHeight: "1.75", overflow: "auto", overflowAnchor: "auto" },
  ".cm-content": { maxWidth: "38em", width: "100%", margin: "0 auto", padding: "1.2em 1.2em 40vh", caretColor: "var(--ink)", boxSizing: "border-box" },
  ".cm-line": { padding: "0" },
  ".cm-cursor, .cm-cursor-primary": { display: "block", borderLeft: "2px solid var(--edge)", marginLeft: "-1px" },
  "&.cm-focused > .cm-scroller > .cm-cursorLayer .cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection)" },
  ".unseen-text": { color: "var(--dim)" },
  ".unseen-text.front_matter": { color: "var(--faint)", fontFamily: "ui-monospace, Menlo, monospace", fontSize: ".78em" },
  ".name": { textDecoration: "underline", textDecorationThickness: "1.5px", textUnderlineOffset: ".22em", textDecorationColor: "var(--rules)", cursor: "pointer" },
  ".name.left_out": { textDecorationStyle: "dotted", textDecorationThickness: "2px", textDecorationColor: "var(--bad)" },
  ".name.never": { textDecorationStyle: "dotted", textDecorationThickness: "2px", textDecorationColor: "var(--edge)" },
  ".answer-text": { whiteSpace: "pre-wrap", background: "var(--answer)", borderRadius: ".2em", boxDecorationBreak: "clone", padding: ".1em .15em" },
  ".answer-text.writing::after": { content: '"▍"', color: "var(--accent)" },
  ".answer-text mark": { background: "var(--bad-wash)", color: "var(--bad)", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: ".25em" },
  ".replaced": { textDecoration: "line-through", color: "var(--dim)" },
  ".cm-panels": { background: "var(--card)", color: "var(--ink)", borderColor: "var(--line)", fontFamily: "system-ui, sans-serif", fontSize: "14px" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel.cm-search": { display: "flex", flexWrap: "wrap", alignItems: "center", gap: ".35rem", padding: ".45rem 2rem .45rem 1rem" },
  ".cm-panel.cm-search br": { content: '""', flexBasis: "100%" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", gap: ".25rem", fontSize: "13px", margin: "0" },
  ".cm-panel.cm-search [name=close]": { position: "absolute", top: ".35rem", right: ".5rem", fontSize: "1.2rem", minWidth: "28px", minHeight: "28px", color: "var(--faint)", cursor: "pointer" },
  ".cm-panel .cm-textfield": { background: "var(--paper)", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: "6px", fontSize: "14px", padding: ".2rem .5rem", margin: "0", minHeight: "1.9rem", flex: "0 1 12rem", minWidth: "0" },
  ".cm-panel .cm-button": { background: "var(--card)", backgroundImage: "none", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: "6px", fontSize: "13px", padding: ".15rem .5rem", margin: "0", minHeight: "1.9rem", cursor: "pointer" },
  ".cm-searchMatch": { background: "var(--mark)" },
  ".cm-searchMatch-selected": { background: "var(--mark)", outline: "2px solid var(--accent)" },
});

/** Make the editor inside a shadow root, where its styles need no exception from the policy. */
export function makeManuscript() {
  const root = byId("manuscript").attachShadow({ mode: "open", delegatesFocus: true });
  view = new EditorView({ root, parent: root, state: stateOf("") });
}

function stateOf(text, { anchor = 0, cursor = 0, isLocked = false } = {}) {
  const positions = returnsOf(text);
  const plain = text.replaceAll("\r\n", "\n");
  const [from, to] = [anchor, cursor].map((at) => Math.min(plain.length, withoutReturns(positions, at)));
  return EditorState.create({
    doc: plain,
    selection: { anchor: from, head: to },
    extensions: [
      wording.of(phrases()), history(), drawSelection(), search({ top: true }), EditorView.lineWrapping,
      EditorState.readOnly.of(isLocked),
      keymap.of([{ key: "Alt-Enter", run: openName }, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
      returns.init(() => positions), coverage, names, answers, takenAnswers, takenIsUndone, THEME,
      EditorView.updateListener.of(onUpdate),
      EditorView.domEventHandlers({ click: onClick, scroll: () => signal("scrolled") }),
    ],
  });
}

function onUpdate(update) {
  const isOutside = update.transactions.some((one) => one.annotation(fromOutside));
  if (isOutside) return;
  for (const { value } of update.transactions.flatMap((one) => one.effects).filter((one) => one.is(setTaken))) signal("taken", value);
  if (update.docChanged) signal("typed", { changes: update.changes, before: update.startState });
  if (update.selectionSet || update.docChanged) signal("caret", caret());
}

function onClick(event) {
  const name = event.target.closest?.(".name");
  if (name && view.state.selection.main.empty) signal("name", { sourceRef: name.dataset.source, from: name.getBoundingClientRect() });
  return false;
}

/** Open the card of the name at the caret. */
function openName({ state, coordsAtPos }) {
  const at = state.selection.main.head;
  let found = "";
  state.field(names).between(at, at, (_from, _to, { spec }) => { found = spec.attributes["data-source"]; });
  if (!found) return false;
  const { left, right, top, bottom } = coordsAtPos.call(view, at);
  signal("name", { sourceRef: found, from: { left, right, top, bottom } });
  return true;
}

/** Return caret and selection as positions in the file. */
export function caret() {
  const { anchor, head } = view.state.selection.main;
  return { anchor: toFile(view.state, anchor), cursor: toFile(view.state, head) };
}

const toFile = (state, at) => at + crossings(state.field(returns), at);

/** Return a position of the file as one of the editor. */
function toEditor(state, at) {
  return withoutReturns(state.field(returns), at);
}

/** Return the changes of an update as edits of the file, to be applied in order. */
export function editsOf({ changes, before }) {
  const edits = [];
  changes.iterChanges((from, to, _start, _end, inserted) => {
    edits.unshift({ from: toFile(before, from), to: toFile(before, to), text: inserted.toString() });
  });
  return edits; // from the end of the text to its beginning, so that none moves another
}

/** Show another document, with the caret where the author left it. */
export function openText(text, options) {
  view.setState(stateOf(text, options));
  revealCaret();
}

/** Take over what changed in the file; caret, selection and scroll stay at the same words. */
export function followText(text) {
  const positions = returnsOf(text);
  const plain = text.replaceAll("\r\n", "\n");
  const change = changeBetween(view.state.doc.toString(), plain);
  const scroll = view.scrollSnapshot();
  view.dispatch({
    changes: change ? { from: change.from, to: change.to, insert: change.text } : [],
    effects: [setReturns.of(positions), scroll],
    annotations: [fromOutside.of(true)],
  });
  return caret();
}

export function showCoverage(ranges) {
  view.dispatch({ effects: setCoverage.of(ranges) });
}

export function showNames(found) {
  view.dispatch({ effects: setNames.of(found) });
}

/** Show what a run writes in the place of `selection`, or at the caret where it is empty; null takes it away. */
export function showAnswer(answer) {
  const { state } = view;
  view.dispatch({ effects: setAnswer.of(answer && { ...answer, from: toEditor(state, answer.from), to: toEditor(state, answer.to) }) });
}

const answerElement = () => view.contentDOM.querySelector(".answer-text");

/** Return whether any of the answer is in view. */
export function isAnswerInView() {
  const [shown, room] = [answerElement(), view.scrollDOM].map((one) => one?.getBoundingClientRect());
  return Boolean(shown) && shown.bottom > room.top && shown.top < room.bottom;
}

/** Bring the answer into view. */
export function revealAnswer() {
  answerElement()?.scrollIntoView({ block: "nearest" });
}

/** Write the answer of a run into the text where it is shown, as if the author had typed it. */
export function takeAnswer(text, runId) {
  const { from, to } = spot(view.state.field(answers)) ?? view.state.selection.main;
  const taken = { runId, isTaken: true, from, to: from + text.length, before: view.state.sliceDoc(from, to) };
  view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: taken.to }, effects: [setAnswer.of(null), setTaken.of(taken)], userEvent: "input.complete" });
  view.focus();
}

/** Take an answer out of the text again, whatever was typed since; returns whether it stands here. */
export function removeAnswer(runId) {
  const taken = view.state.field(takenAnswers).find((one) => one.runId === runId);
  if (!taken) return false;
  const { from, to, before } = taken;
  view.dispatch({ changes: { from, to, insert: before }, effects: setTaken.of({ ...taken, to: from + before.length, isTaken: false }), userEvent: "delete" });
  return true;
}

/** Return the position of the text that is at the top of the view. */
export const topOfText = () => toFile(view.state, view.lineBlockAtHeight(view.scrollDOM.scrollTop).from);

/** Bring a position of the text to the top of the view. */
export function scrollText(top) {
  const at = Math.min(view.state.doc.length, toEditor(view.state, top));
  view.dispatch({ effects: EditorView.scrollIntoView(at, { y: "start" }) });
}

/** Bring the caret into view with most of the room above it, where the text is that led to it. */
function revealCaret() {
  const yMargin = Math.round(view.scrollDOM.clientHeight * 0.3);
  view.dispatch({ effects: EditorView.scrollIntoView(view.state.selection.main.head, { y: "end", yMargin }) });
}

/** Put the caret or the selection somewhere and bring it into view. */
export function select(from, to = from) {
  const [anchor, head] = [from, to].map((at) => Math.min(view.state.doc.length, toEditor(view.state, at)));
  view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(head, { y: "center" }) });
}

/** Select the paragraph of the caret, or the last one before it that is not blank. */
export function selectParagraph() {
  const { doc, selection } = view.state;
  let line = doc.lineAt(selection.main.head);
  while (!line.text.trim() && line.number > 1) line = doc.line(line.number - 1);
  view.dispatch({ selection: { anchor: line.from, head: line.to }, scrollIntoView: true });
  view.focus();
}

export const focusText = () => view.focus();
export const hasFocus = () => view.hasFocus;
export const findInText = () => openSearchPanel(view);
/** Return the editor with its caret and all that can be undone in it, to be shown again later. */
export const textState = () => view.state;

/** Show a document again as it was. */
export function setText(state) {
  view.setState(state);
  showAnswer(null);
  translateText();
  revealCaret();
}

/** Return the text with the line ends of the file. */
export function fileText() {
  const found = new Set(view.state.field(returns));
  return found.size ? currentText().split("").map((one, at) => (found.has(at) ? `\r${one}` : one)).join("") : currentText();
}

export const currentText = () => view.state.doc.toString();

/** Speak the language of the page. */
export function translateText() {
  view.dispatch({ effects: wording.reconfigure(phrases()) });
}

function phrases() {
  const spoken = ["Find", "Replace", "next", "previous", "all", "match case", "regexp", "by word", "replace", "replace all", "close"];
  return [
    EditorState.phrases.of(Object.fromEntries(spoken.map((one) => [one, string(`editor ${one}`)]))),
    EditorView.contentAttributes.of({ "aria-label": string("manuscript"), spellcheck: "false", tabindex: "0" }),
  ];
}

// Positions in a file with carriage returns, and in the editor, which counts each line break as one.

/** Return the editor's positions of the line breaks that have a carriage return in the file. */
function returnsOf(text) {
  const found = [];
  let at = text.indexOf("\r\n");
  while (at >= 0) {
    found.push(at - found.length);
    at = text.indexOf("\r\n", at + 2);
  }
  return found;
}

/** Return how many of them lie before a position of the editor. */
function crossings(returns, at) {
  return count(returns, (position) => position < at);
}

/** Return a position of the file as one of the editor. */
function withoutReturns(returns, at) {
  return at - count(returns, (position, before) => position + before < at);
}

/** Count the leading items that pass; the first that does not ends it. */
function count(returns, passes) {
  let [low, high] = [0, returns.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(returns[middle], middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
