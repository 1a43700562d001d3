// The book map: one bar per chapter, filled where the model sees it; people, places and threads beneath.

import { byId, button, fill, h, patch } from "./dom.js";
import { injectToggle, showInjectToggle } from "./card.js";
import { inspection } from "./inspection.js";
import { string } from "./language.js";
import { isIn, nameOf, piecesFrom } from "./pieces.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { onSignal, signal } from "./signals.js";

const GROUPS = [["peopleTitle", "person"], ["worldNotes", "note"], ["threads", "thread"]];
const MANY = 16;
const STATES = ["seen", "left_out", "never", "future"];
const map = { documents: [], subjects: [] };
let mustReveal = false;

export const subjects = () => map.subjects;
export const chapters = () => map.documents;
export const subjectOf = (sourceRef) => map.subjects.find((one) => one.sourceRef === sourceRef);

/** Load everything that has a name in the project. */
export async function loadSubjects() {
  const answer = await invoke("context:subjects", { projectId: place.projectId });
  map.subjects = answer.ok ? answer.data.items : [];
  showMap();
}

/** Return what an author calls a document. */
export function titleOf(documentId) {
  const found = map.documents.find((one) => one.documentId === documentId);
  const subject = map.subjects.find((one) => one.sourceRef === documentId);
  return found?.title || subject?.name || documentId;
}

/** Forget the map of another project. */
export function clearMap() {
  Object.assign(map, { documents: [], subjects: [] });
}

export function showMap() {
  const coverage = inspection.shown?.result.coverage;
  if (coverage) map.documents = coverage.documents;
  const documents = map.documents.length ? map.documents : map.subjects.filter((one) => one.kind === "chapter").map(unread);
  const longest = Math.max(1, ...documents.map((one) => one.length));
  patch(byId("chapters"), documents, { key: (one) => one.documentId, sign: (one) => JSON.stringify([one, longest, one.documentId === place.documentId, string("seen")]), render: (one) => chapter(one, longest) });
  byId("map").classList.toggle("many", documents.length > MANY);
  patch(byId("cast"), GROUPS.filter(([, kind]) => kind !== "thread" || ofKind(kind).length), { key: ([, kind]) => kind,
    sign: ([title, kind]) => JSON.stringify([string(title), ofKind(kind).length > 0]), render: group });
  for (const [, kind] of GROUPS) showSubjects(kind);
  fill(byId("map-legend"), ...STATES.map((state) => h("span", {}, h("i", { class: `key ${state}` }), string(state))),
    documents.some(isSummedUp) ? h("span", { class: "wide" }, h("i", { class: "summed-up" }, "≈"), string("summedUp")) : null);
  if (mustReveal) revealHere();
  if (coverage) mustReveal = false;
}

const revealHere = () => byId("chapters").querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "center" });

const isSummedUp = ({ told }) => told === "full" || told === "brief";

const unread = ({ sourceRef, name, number }) => ({ documentId: sourceRef, title: name, number, length: 1, place: "before", ranges: [] });

function chapter(document, longest) {
  const { documentId, title, length, ranges } = document;
  const isHere = documentId === place.documentId;
  const track = h("span", { class: "track", "aria-hidden": "true" });
  track.style.width = `${Math.max(6, (length / longest) * 100)}%`;
  for (const { from, to, state } of ranges) {
    const piece = h("i", { class: state });
    piece.style.left = `${(from / Math.max(1, length)) * 100}%`;
    piece.style.width = `${((to - from) / Math.max(1, length)) * 100}%`;
    track.append(piece);
  }
  const summary = summaryOf(document);
  return h("li", {}, h("button", { type: "button", class: `chapter ${isHere ? "here" : ""} ${document.place === "after" ? "after" : ""}`, "aria-current": isHere ? "true" : undefined,
    title: `${title} · ${summary}`, onclick: (event) => signal("open", { documentId, cursor: positionAt(event, track, length, isHere) }) },
  h("span", { class: "chapter-name" }, title), h("span", { class: "chapter-number", "aria-hidden": "true" }, document.number ?? title), isSummedUp(document) ? h("span", { class: "summed-up", title: string("summedUp") }, "≈") : null,
  h("span", { class: "bar-room" }, track), h("span", { class: "unseen" }, summary)));
}

/** Return the bar as a sentence. */
function summaryOf({ ranges, length, place: where }) {
  if (where === "after") return string("future");
  const share = (state) => ranges.filter((one) => one.state === state).reduce((sum, one) => sum + one.to - one.from, 0) / Math.max(1, length);
  const seen = share("seen");
  if (seen > 0.995) return string("seenWhole");
  if (seen > 0) return string("seenPart", Math.max(1, Math.round(seen * 100)));
  return string(share("left_out") > 0 ? "left_out" : "never");
}

/** A click on the bar goes to that place of the chapter, one on the name to its end. */
function positionAt({ clientX, detail }, track, length, isHere) {
  const { left, width } = track.getBoundingClientRect();
  if (!detail || clientX < left || clientX > left + width) return isHere ? place.cursor : undefined;
  return Math.round(((clientX - left) / width) * length);
}

const ofKind = (kind) => map.subjects.filter((one) => one.kind === kind);

function group([title, kind]) {
  const empty = () => h("p", { class: "faint" }, string(`no ${kind}`), " ", button(string("writeOne"), () => signal("write-down", { kind, name: "" }), { class: "link" }));
  return h("section", { class: "map-part", "data-group": kind }, h("h2", {}, string(title)), ofKind(kind).length ? h("ul", { class: "subjects" }) : empty());
}

/** List what a group has, each with a mark that says whether the model has it. */
function showSubjects(kind) {
  const list = byId("cast").querySelector(`[data-group="${kind}"] ul`);
  const rows = ofKind(kind).map((one) => ({ one, state: one.problem ? "problem" : stateOf(one.sourceRef) }));
  if (list) patch(list, rows, { key: ({ one }) => one.sourceRef, sign: (item) => JSON.stringify([item, string("seen")]), render: subjectRow, update: updateRow });
}

function subjectRow({ one, state }) {
  const open = h("button", { type: "button", class: "subject", "data-key": `subject:${one.sourceRef}`, onclick: () => signal("name", { sourceRef: one.sourceRef, from: open.getBoundingClientRect() }) }, ...inside(one, state));
  return h("li", {}, open, injectToggle(one));
}

/** Change a row in its place. */
function updateRow(row, { one, state }) {
  row.querySelector(".subject").replaceChildren(...inside(one, state));
  const [before, now] = [row.querySelector(".eye"), injectToggle(one)];
  if (before && now) showInjectToggle(before, one);
  else if (before) before.remove();
  else if (now) row.append(now);
  return row;
}

const inside = (one, state) => [h("i", { class: `mark ${state}`, "aria-hidden": "true" }), h("span", { class: "subject-name" }, nameOf(one)), h("span", { class: "unseen" }, ` (${string(state)})`)];

/** Return whether the prompt has a source: `seen`, `left_out` or `never` considered. */
export function stateOf(sourceRef) {
  if (!inspection.shown) return "never";
  const found = piecesFrom(inspection.shown.result, sourceRef);
  if (found.some(isIn)) return "seen";
  return found.length ? "left_out" : "never";
}

onSignal(["inspected", "language"], showMap);
addEventListener("resize", revealHere); // the map becomes a strip in a narrower window
onSignal("document", () => {
  mustReveal = true;
  showMap();
});
