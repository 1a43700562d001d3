// The page: puts its parts together.

import { clearMap, loadSubjects } from "./bookMap.js";
import { budgetProfile, loadBudget } from "./budget.js";
import { closeCard, listenToCards } from "./card.js";
import { readAddress, stayConnected } from "./connection.js";
import { byId, fill, h } from "./dom.js";
import { closeDrawer, listenToDrawer } from "./drawer.js";
import "./headline.js";
import { clear, inspection, isIndexing, prepare, refresh } from "./inspection.js";
import { errorText, loadCodes, locale, string, switchLanguage, translatePage } from "./language.js";
import { findInText, focusText, hasFocus, makeManuscript, scrollText, showCoverage, showNames, topOfText, translateText } from "./manuscript.js";
import { fileChanged, isDraft, isOpen, openDocument, resend, sendTyped } from "./openDocument.js";
import { listenToPanes } from "./panes.js";
import { walk } from "./pieceList.js";
import { pieceOf } from "./pieces.js";
import { go, place, rememberView, writeAddress } from "./place.js";
import { askField, listenToQuestion, resume } from "./question.js";
import { initialize, invoke, isConnected, on } from "./rpc.js";
import { loadRules } from "./rules.js";
import { enableRun, listenToRun, loadSkills, run } from "./run.js";
import { onSignal, signal } from "./signals.js";
import { listenToStates, setState, showStates } from "./states.js";
import { listenToTabs, openTab, showPiece } from "./tabs.js";
import { forgetDone, toast, undoLast } from "./undo.js";

const INDEX_MS = 600;
const RULES = ".creonow/rules/constraints.json";
let openProjectId = "";
let reportedTotal = 0;
let wanted = null;
// What the address says and what was in view before a reload, until that is open: the connection may be lost before.
let initial = {};
let viewBefore = history.state;
let indexTimer = 0;

/** After every connection: list the projects and open the one of the address, else the first. */
async function onConnected(address) {
  const from = { ...initial, ...address };
  initial = from;
  const listed = await invoke("viewer:projects", {});
  if (!listed.ok) return toast(errorText(listed.error));
  const projects = listed.data.items;
  fill(byId("project"), ...projects.map((one) => h("option", { value: one.projectId }, one.name)));
  setState({ projects });
  const wanted = [from.projectId, place.projectId, sessionStorage.getItem("project")];
  const chosen = wanted.map((id) => projects.find((one) => one.projectId === id)).find(Boolean) ?? projects[0];
  if (!chosen) return undefined;
  return openProject(chosen.projectId, from);
}

/** Open a project; perhaps the same one again after the connection was lost. */
async function openProject(projectId, from = {}) {
  byId("project").value = projectId;
  sessionStorage.setItem("project", projectId);
  const isSame = projectId === openProjectId;
  if (!isSame) await leaveProject();
  openProjectId = projectId;
  Object.assign(place, isSame ? {} : { documentId: "", ...from }, { projectId });
  // Watch first: a file that changes after it was read must not go unnoticed.
  const watch = await invoke("context:creonow:watch:start", { projectId });
  const [status] = await Promise.all([invoke("viewer:tree", { projectId }), loadSkills(), loadBudget(), loadRules(), loadSubjects()]);
  setState({ watching: watch.ok, tree: status.ok ? status.data.exists : null, writes: status.ok && status.data.documentWrites });
  if (isSame && isOpen()) {
    await resend();
    if (!isDraft()) await fileChanged();
    refresh("elsewhere");
  } else {
    wanted = { piece: place.piece, about: place.about, view: viewBefore };
    await loadDocuments(from);
  }
  if (isConnected()) {
    initial = {};
    viewBefore = null;
  }
  openTab(place.tab);
  signal("pane", place.pane);
  writeAddress();
}

async function leaveProject() {
  if (openProjectId) await invoke("context:creonow:watch:stop", { projectId: openProjectId });
  clear();
  clearMap();
  forgetDone();
  if (openProjectId) Object.assign(place, { documentId: "", cursor: 0, anchor: 0, pinned: [], piece: "" });
}

/** List the documents; unless one is open, open the address's, or the last one. */
async function loadDocuments(from = {}) {
  const listed = await invoke("context:document:list", { projectId: place.projectId });
  if (!listed.ok) return;
  const documents = listed.data.items.map((one) => one.documentId);
  setState({ documents });
  const wanted = from.documentId ?? place.documentId;
  if (isOpen() && place.documentId === wanted && documents.includes(wanted) && !from.documentId) return;
  const chosen = documents.includes(wanted) ? wanted : documents.at(-1);
  if (!chosen) return;
  await openDocument(chosen, chosen === wanted ? { cursor: from.cursor, anchor: from.anchor } : {});
}

async function filesChanged(event) {
  if (event.projectId !== place.projectId) return;
  if (event.watching === false) setState({ watching: false });
  if (event.paths.includes(RULES)) await loadRules();
  const hasDocuments = event.paths.some((path) => !path.startsWith(".creonow/"));
  if (hasDocuments) {
    await loadDocuments();
    await fileChanged(event.paths);
  }
  await loadSubjects();
  signal("subjects-loaded");
  refresh("elsewhere");
}

/** Look at all files again, and try to watch them from now on. */
async function watchAgain() {
  const watch = await invoke("context:creonow:watch:start", { projectId: place.projectId });
  setState({ watching: watch.ok });
  await filesChanged({ projectId: place.projectId, watching: watch.ok, paths: [RULES, place.documentId] });
}

/** Show where the model sees the text, and which names it knows. */
function showText() {
  const { result, request } = inspection.shown;
  if (request.documentId !== place.documentId) return;
  const here = result.coverage?.documents.find((one) => one.documentId === place.documentId);
  showCoverage(here?.ranges ?? []);
  showNames(result.names ?? []);
}

/** Load the budget again if someone else changed it; once per total, because a smaller model never agrees. */
function followBudget() {
  if (inspection.shown.request.whatIf) return;
  const total = inspection.shown.result.totals.budgetTokens;
  const isNew = total !== budgetProfile()?.totalBudgetTokens && total !== reportedTotal;
  reportedTotal = total;
  if (isNew) loadBudget();
}

/** While the index is being built, look again until it is there. */
function awaitIndex() {
  clearTimeout(indexTimer);
  if (isIndexing(inspection.shown.result)) indexTimer = setTimeout(() => refresh("elsewhere"), INDEX_MS);
}

/** Go to the piece of a source or, if the prompt has none, to its text. */
function showSource(sourceRef) {
  const piece = pieceOf(inspection.shown.result, sourceRef);
  if (piece) return showPiece(piece.address);
  return openDocument(sourceRef.replace(/#.*$/, ""));
}

/** Come back to what the address names once it is known: the question, the piece, and what was in view. */
async function openWanted() {
  if (!wanted) return;
  const { piece, about, view } = wanted;
  wanted = null;
  if (about) await resume(about);
  const { pane } = place; // read after the wait, in which the author may have gone to another
  if (piece) showPiece(piece);
  signal("pane", pane);
  await untilDrawn();
  if (view?.documentId === place.documentId) {
    scrollText(view.top);
    if (view.tab === place.tab) byId(place.tab).scrollTop = view.listTop;
  }
}

/** Return once what was changed is laid out. */
const untilDrawn = () => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });

/** What is in view, so that a reload comes back to it. */
const currentView = () => ({ documentId: place.documentId, top: topOfText(), tab: place.tab, listTop: byId(place.tab).scrollTop, instruction: place.instruction });

/** Show the whole page in the current language. */
function translate() {
  translatePage();
  byId("run").textContent = string("run");
  byId("run").title = shortcut("↵");
  byId("question-key").textContent = shortcut("K");
  translateText();
  signal("language");
}

function listen() {
  addEventListener("keydown", onKey);
  byId("project").addEventListener("change", (event) => openProject(event.target.value));
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    focusText();
  });
  byId("language").addEventListener("click", async () => {
    switchLanguage();
    translate();
    await initialize(locale());
    await loadSkills();
    refresh();
  });
  on("context:creonow:changed", filesChanged);
  onSignal("inspected", () => {
    showText();
    followBudget();
    awaitIndex();
    openWanted();
  });
  onSignal("open", ({ documentId, cursor, anchor }) => openDocument(documentId, { cursor, anchor }));
  onSignal("subjects", async () => {
    await loadSubjects();
    signal("subjects-loaded");
    refresh();
  });
  onSignal("address", async (found) => {
    if (found.projectId && found.projectId !== place.projectId) return openProject(found.projectId, found);
    if (found.documentId && found.documentId !== place.documentId) await openDocument(found.documentId, found);
    go({ ...(found.skillId ? { skillId: found.skillId } : {}), ...(found.pinned ? { pinned: found.pinned } : {}) });
    if (found.tab) openTab(found.tab);
    if (found.piece) showPiece(found.piece);
    return undefined;
  });
  onSignal("typed", () => refresh());
  onSignal("watch", watchAgain);
  onSignal("closed", () => {
    clear();
    clearMap();
    showStates();
  });
  onSignal("source", showSource);
}

// The keys of the desk: ⌘K asks, ⌘↵ runs, ⌘Z undoes, J and K walk, / finds, Escape closes.

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Write a shortcut as this system does. */
const shortcut = (key) => (isMac ? `⌘${key}` : `Ctrl+${key}`);

const isField = (element) => element?.matches?.("input, textarea, select") || hasFocus();

function onKey(event) {
  if (event.isComposing) return;
  const isCommand = isMac ? event.metaKey : event.ctrlKey;
  const does = isCommand ? COMMANDS[event.key.toLowerCase()] : PLAIN[event.key];
  if (!does || (!isCommand && event.key !== "Escape" && (isField(document.activeElement) || event.altKey || event.ctrlKey || event.metaKey))) return;
  if (does() !== false) event.preventDefault();
}

const COMMANDS = {
  k: askField,
  enter: () => run(),
  z: () => (isField(document.activeElement) ? false : undoLast()),
};

const PLAIN = {
  j: () => walk(place.tab, 1),
  k: () => walk(place.tab, -1),
  "/": find,
  Escape: () => closeCard() || closeDrawer(),
};

/** Find in the open tab, or in the manuscript where the tab has no field. */
function find() {
  const field = byId(place.tab).querySelector("[data-find]");
  if (!field || byId("panel").hidden) return findInText();
  field.focus();
  return field.select();
}

prepare(sendTyped);
rememberView(currentView);
listenToPanes();
initial = readAddress();
await loadCodes();
makeManuscript();
for (const listenTo of [listenToStates, listenToTabs, listenToQuestion, listenToCards, listenToDrawer, listenToRun]) listenTo();
listen();
translate();
showStates();
enableRun();
if (viewBefore?.instruction) signal("instruction", viewBefore.instruction);
stayConnected(onConnected);
