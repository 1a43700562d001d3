// Cards of people, notes and threads: what is written of each, whether the model has it, the eye that says when it comes
// into a prompt, and the forms that write one down or fix its file. All of it writes files, and can be undone.

import { stateOf, subjectOf } from "./bookMap.js";
import { byId, button, changeBetween, fill, h, svg, withBars } from "./dom.js";
import { inspection } from "./inspection.js";
import { errorText, string } from "./language.js";
import { fileOf, nameOf, pieceOf, whyOf } from "./pieces.js";
import { MASK, place } from "./place.js";
import { invoke } from "./rpc.js";
import { addRule } from "./rules.js";
import { onSignal, signal } from "./signals.js";
import { takeBack, toast } from "./undo.js";

const INJECT_MODES = ["always", "mentioned", "manual", "never"];
const WRITABLE = ["person", "note", "rule"];
const EYELID_PATH = "M1.2 9S4 4 9 4s7.8 5 7.8 5-2.8 5-7.8 5S1.2 9 1.2 9Z";
const WIDTH = 340;
let shown = null;
let opener = null;

/** Make the button, an eye, that shows when a person or a note comes into prompts, and cycles to the next way. */
export function injectToggle(subject) {
  const { kind, inject, problem } = subject;
  if (problem || !inject || !["person", "note"].includes(kind)) return null;
  const made = h("button", { type: "button", onclick: () => setMode(made.subject, after(made.subject.inject)) });
  return showInjectToggle(made, subject);
}

/** Show in the toggle when its subject comes into prompts now. */
export function showInjectToggle(made, subject) {
  const { sourceRef, name, inject, revision } = subject;
  const label = string("eyeLabel", name, string(`inject ${inject}`), string(`inject ${after(inject)}`));
  const attributes = { class: `eye ${inject}`, "data-key": `eye:${sourceRef}`, "data-inject": inject, "data-revision": revision, "aria-label": label, title: label };
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.replaceChildren(drawing(inject));
  made.subject = subject;
  return made;
}

const after = (inject) => INJECT_MODES[(INJECT_MODES.indexOf(inject) + 1) % INJECT_MODES.length];

/** Draw an eye: open, half open, a mere outline, or struck out. */
function drawing(inject) {
  const pupil = { always: svg("circle", { cx: "9", cy: "9", r: "2.8" }), mentioned: svg("path", { d: "M6.2 9a2.8 2.8 0 0 0 5.6 0Z" }), never: svg("path", { class: "stroke", d: "M3 15 15 3" }) }[inject];
  return svg("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, svg("path", { class: "lid", d: EYELID_PATH }), pupil);
}

/** Write into its file when a person or a note comes into prompts. */
export async function setMode({ sourceRef, name, revision }, inject) {
  const target = { projectId: place.projectId, path: sourceRef };
  const answer = await invoke("context:creonow:inject:set", { ...target, inject, ...(revision ? { expectedRevision: revision } : {}) });
  signal("subjects");
  if (!answer.ok) return toast(errorText(answer.error));
  return toast(string("eyeSet", name, string(`inject ${inject}`)), () => undoFile(answer.data.undo));
}

async function undoFile(undo) {
  const isBack = await takeBack(undo);
  signal("subjects");
  return isBack;
}

/** Open the card of a source beside what was clicked. */
export function openCard({ sourceRef, from }) {
  opener = document.activeElement;
  shown = { sourceRef, from };
  showCard();
  byId("card").querySelector("button")?.focus({ preventScroll: true });
}

function showCard() {
  const box = byId("card");
  const { sourceRef, from } = shown;
  const subject = subjectOf(sourceRef);
  const result = inspection.shown?.result;
  const piece = result && pieceOf(result, sourceRef);
  const state = subject?.problem ? "problem" : stateOf(sourceRef);
  const name = nameOf({ name: subject?.name ?? piece?.name, sourceRef });
  const then = (work) => () => {
    closeCard();
    work();
  };
  box.setAttribute("aria-label", name);
  fill(box,
    h("header", {}, h("h3", {}, h("i", { class: `mark ${state}`, "aria-hidden": "true" }), name), subject ? injectToggle(subject) : null,
      button("×", closeCard, { class: "close", "aria-label": string("close"), "data-key": "card:close" })),
    subject?.aliases?.length ? h("p", { class: "faint" }, string("alsoCalled", subject.aliases.join(" · "))) : null,
    h("p", { class: `card-state ${state}` }, subject?.problem ?? string(`card ${state}`)),
    piece && state === "left_out" ? h("p", { class: "faint" }, whyOf(piece, result)) : null,
    piece?.content ? h("div", { class: "piece-text", tabindex: "0", role: "group", "aria-label": name }, ...withBars(piece.content)) : null,
    h("p", { class: "piece-foot" }, h("code", { class: "path" }, fileOf({ sourceRef })),
      button(string("askAbout"), then(() => signal("ask", sourceRef)), { class: "link", "data-key": "card:ask" }),
      piece ? button(string("showPiece"), then(() => signal("piece", piece.address)), { class: "link" }) : null,
      subject ? button(string("editFile"), then(() => openFix({ path: sourceRef, line: subject.line, name: subject.problem ? "" : name })), { class: "link", "data-key": "card:edit" }) : null));
  box.classList.remove("wide");
  box.hidden = false;
  box.style.left = `${Math.max(8, Math.min(innerWidth - WIDTH - 8, from.left))}px`;
  const below = from.bottom + 6;
  box.style.top = `${Math.max(8, Math.min(innerHeight - box.offsetHeight - 8, below))}px`;
}

/** Close the card or the form in its place; returns whether there was one. */
export function closeCard() {
  if (byId("card").hidden) return false;
  const hadFocus = byId("card").contains(document.activeElement);
  byId("card").hidden = true;
  shown = null;
  if (hadFocus) opener?.focus({ preventScroll: true });
  return true;
}

/** Show a form in the place of the card; `write` returns the daemon's answer, `done` says what was done. */
function showForm({ title, fields, focus, write, done, isWide = false }) {
  opener = document.activeElement;
  shown = null;
  const box = byId("card");
  const problem = h("p", { class: "message bad", role: "alert" });
  box.setAttribute("aria-label", title);
  box.classList.toggle("wide", isWide);
  box.replaceChildren(h("form", { class: "write-down", onsubmit: async (event) => {
    event.preventDefault();
    const answer = await write();
    if (!answer.ok) {
      problem.textContent = errorText(answer.error);
      return;
    }
    closeCard();
    signal("subjects");
    toast(done(), answer.data.undo ? () => undoFile(answer.data.undo) : undefined);
  } },
  h("h3", {}, title), ...fields, problem,
  h("p", { class: "row" }, h("button", { type: "submit", class: "primary" }, string("save")), button(string("cancelWriting"), closeCard))));
  box.hidden = false;
  box.style.left = `${Math.max(8, (innerWidth - box.offsetWidth) / 2)}px`;
  box.style.top = "12vh";
  focus.focus();
}

/** Write down a person, a note or a rule; it becomes a new file, never one that exists. */
function openWriteDown({ kind = "person", name = "" }) {
  const chosen = h("select", { id: "write-kind" }, ...WRITABLE.map((one) => h("option", { value: one, selected: one === kind }, string(`kind ${one}`))));
  const title = h("input", { id: "write-name", value: name, autocomplete: "off", required: "" });
  const text = h("textarea", { id: "write-text", rows: "5" });
  const called = () => title.value.trim();
  const write = () => {
    const content = text.value.trim();
    if (chosen.value === "rule") return addRule(content ? `${called()}: ${content}` : called());
    return invoke("viewer:write_down", { projectId: place.projectId, kind: chosen.value, name: called(), text: content });
  };
  showForm({ title: string("writeDown"), focus: name ? text : title, write, done: () => string("writtenDown", called()),
    fields: [h("label", {}, string("writeKind"), chosen), h("label", {}, string("writeName"), title), h("label", {}, string("writeText"), text)] });
}

/** Fix a file of `.creonow` where it stands; a secret in it stays masked, and stays in the file. */
async function openFix({ path, line, name }) {
  const target = { projectId: place.projectId, path };
  const read = await invoke("viewer:file:read", target);
  if (!read.ok) return toast(errorText(read.error));
  const { text, revision } = read.data;
  const field = h("textarea", { id: "file-text", rows: "12", spellcheck: "false" });
  field.value = text;
  const write = () => {
    const edit = changeBetween(text, field.value);
    if (edit?.text.includes(MASK)) return { ok: false, error: { code: "", message: string("maskTyped") } };
    return invoke("viewer:file:write", { ...target, revision, edits: edit ? [edit] : [] });
  };
  showForm({ title: name ? string("editOne", name) : string("fixTitle"), focus: field, write, done: () => string("fileSaved", path), isWide: true,
    fields: [h("code", { class: "path" }, path), h("label", {}, string("fileText"), field)] });
  if (line) selectLine(field, line);
  else field.setSelectionRange(text.length, text.length);
  return undefined;
}

function selectLine(field, line) {
  const lines = field.value.split("\n");
  const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  field.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
}

export function listenToCards() {
  onSignal("name", openCard);
  onSignal("write-down", openWriteDown);
  onSignal("fix", openFix);
  onSignal(["subjects-loaded", "inspected", "language"], () => shown && showCard());
  addEventListener("pointerdown", (event) => {
    if (shown && !byId("card").contains(event.target)) closeCard();
  }, true);
}
