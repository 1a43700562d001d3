// What the page says when there is nothing to show: each state says what to do, and offers it.

import { retryNow } from "./connection.js";
import { byId, button, copyButton, fill, h } from "./dom.js";
import { inspection, isTooLarge, refresh } from "./inspection.js";
import { errorText, string, time } from "./language.js";
import { selectParagraph } from "./manuscript.js";
import { beginDocument, openProblem } from "./openDocument.js";
import { place } from "./place.js";
import { invoke } from "./rpc.js";
import { onSignal, signal } from "./signals.js";
import { toast } from "./undo.js";

const FIRST_CHAPTER = "chapters/01.md";
const state = { connection: "connecting", projects: null, documents: null, tree: null, writes: false, watching: true };

/** Note what is known, and show what follows from it. */
export function setState(changes) {
  Object.assign(state, changes);
  showStates();
}

export function showStates() {
  showConnection();
  showNotice();
  showEmpty();
  showPanelState();
  showPhoneState();
}

/** Whether there is nothing to show but what to do: no project, or an address that was used. */
const isBare = () => state.projects?.length === 0 || isRefused();
const isRefused = () => state.connection === "refused" && !inspection.shown;

function showConnection() {
  const badge = byId("connection");
  badge.textContent = string(state.connection);
  badge.dataset.state = state.connection;
}

const command = (text) => h("span", { class: "command" }, h("code", {}, text), copyButton(string("copy"), () => text, { class: "small", done: string("copied"), failed: string("copyFailed") }));

function showNotice() {
  const box = byId("notice");
  const contents = notice();
  box.hidden = !contents;
  box.dataset.kind = contents?.kind ?? "";
  fill(box, ...(contents?.parts ?? []));
}

function notice() {
  if (isRefused()) return null;
  if (state.connection === "refused") return { kind: "refused", parts: [h("p", {}, string("tokenGone")), command("creonowd view")] };
  if (state.connection === "disconnected") {
    const stale = inspection.shown ? ` ${string("stale", time(inspection.shown.at))}` : "";
    return { kind: "lost", parts: [h("p", {}, string("lost") + stale), button(string("tryNow"), retryNow, { class: "small" }), h("p", {}, string("lostDo")), command("creonowd view")] };
  }
  if (!state.watching) return { kind: "unwatched", parts: [h("p", {}, string("unwatched")), button(string("lookAgain"), () => signal("watch"), { class: "small" })] };
  return null;
}

/** In the place of the manuscript: no right to connect, no project, no chapters, or a file that cannot be read. */
function showEmpty() {
  const contents = emptyContents();
  const box = byId("text-empty");
  box.hidden = !contents;
  byId("manuscript").hidden = Boolean(contents);
  document.body.classList.toggle("bare", isBare());
  fill(box, ...(contents ?? []));
}

function emptyContents() {
  if (isRefused()) return [h("h3", {}, string("tokenGoneTitle")), h("p", {}, string("tokenGone")), command("creonowd view")];
  if (!state.projects) return null;
  if (!state.projects.length) return [h("h3", {}, string("noProject")), h("p", {}, string("noProjectDo")), command("creonowd view --project ."), h("p", {}, string("noProjectSample")), command("creonowd view --sample")];
  if (state.documents && !state.documents.length && !place.documentId) {
    return [h("h3", {}, string("noChapters")), h("p", {}, string("noChaptersDo")), button(string("beginChapter"), () => {
      beginDocument(FIRST_CHAPTER, state.writes);
      showStates();
    }, { class: "primary", id: "begin-chapter" })];
  }
  if (openProblem()) return [h("h3", {}, string("unreadable")), h("p", {}, openProblem().message || errorText(openProblem())), button(string("lookAgain"), () => signal("open", { documentId: place.documentId }), {})];
  return null;
}

/** In the panel: waiting, an error that is not about size, or no folder of notes yet. */
function showPanelState() {
  const box = byId("state");
  const { failure, shown } = inspection;
  box.dataset.state = failure ? "error" : shown ? (shown.request.whatIf ? "whatIf" : "ready") : place.documentId ? "loading" : "empty";
  byId("panel").classList.toggle("stale", Boolean(failure && !isTooLarge()) || state.connection === "disconnected");
  byId("tabs-box").hidden = !shown || isTooLarge();
  byId("ask").hidden = isTooLarge() || !place.documentId;
  const parts = [];
  if (needsSelection()) parts.push(string("needsSelection"), " ", paragraphButton({ id: "select-paragraph" }));
  else if (failure && !isTooLarge()) parts.push(errorText(failure), shown ? ` ${string("stale", time(shown.at))}` : "", " ", button(string("lookAgain"), () => refresh(), { class: "small" }));
  else if (!shown && place.documentId && state.connection === "connected") parts.push(string("loading"));
  else if (state.tree === false && state.projects?.length) parts.push(string("noTree"), " ", button(string("makeTree"), makeTree, { class: "small", id: "make-tree" }));
  fill(box, ...parts);
}

const needsSelection = () => inspection.failure?.code === "SKILL_SELECTION_REQUIRED";
const paragraphButton = (attributes = {}) => button(string("selectParagraph"), selectParagraph, { class: "small", ...attributes });

/** On a phone, where the panel is another page: that something is wrong there. */
function showPhoneState() {
  const { failure } = inspection;
  const box = byId("phone-state");
  box.hidden = !failure;
  if (!failure) return fill(box);
  const reason = isTooLarge() ? string("headlineTooLarge") : needsSelection() ? string("needsSelection") : errorText(failure);
  return fill(box, h("span", {}, reason), needsSelection() ? paragraphButton() : button(string("showWhat"), () => signal("pane", "sees"), { class: "small" }));
}

async function makeTree() {
  const answer = await invoke("viewer:tree", { projectId: place.projectId, make: true });
  if (!answer.ok) return toast(errorText(answer.error));
  setState({ tree: true });
  signal("subjects");
  return toast(string("treeMade"));
}

export function listenToStates() {
  onSignal("connection", (connection) => setState({ connection }));
  onSignal(["inspected", "failed", "language", "document"], showStates);
}
