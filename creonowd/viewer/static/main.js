// The page: puts its parts together.

import { showBackends } from "./backends.js";
import { clearMap, loadSubjects } from "./bookMap.js";
import { budgetProfile, loadBudget } from "./budgetBar.js";
import { showBudgetForm } from "./budgetForm.js";
import { listenToCard } from "./card.js";
import { readAddress, stayConnected } from "./connection.js";
import { showDeveloper } from "./developer.js";
import { byId, fill, h } from "./dom.js";
import { listenToDrawer, makeDrawer } from "./drawer.js";
import "./headline.js";
import { clear, inspection, prepare, refresh } from "./inspection.js";
import { listenToKeys, shortcut } from "./keys.js";
import { errorText, loadCodes, locale, string, switchLanguage, translatePage } from "./language.js";
import { focusText, makeManuscript, showCoverage, showNames, translateText } from "./manuscript.js";
import { fileChanged, isScratch, openDocument, resend, sendTyped } from "./openDocument.js";
import { listenToPanes } from "./panes.js";
import { pieceOf } from "./pieces.js";
import { go, place, writeAddress } from "./place.js";
import { listenToQuestion } from "./question.js";
import { showExport } from "./report.js";
import { initialize, invoke, on } from "./rpc.js";
import { loadRules, showRules } from "./rules.js";
import { enableRun, listenToRun } from "./run.js";
import { signal, when } from "./signals.js";
import { listenToSkills, loadSkills } from "./skills.js";
import { listenToStates, setState, showStates } from "./states.js";
import { listenToTabs, openTab, showPiece } from "./tabs.js";
import { toast } from "./undo.js";
import { showUsage } from "./usage.js";
import { listenToWriteDown } from "./writeDown.js";

const INDEX_MS = 600;
const RULES = ".creonow/rules/constraints.json";
let openProjectId = "";
let reportedTotal = 0;
let wantedPiece = "";
let initial = {};
let indexTimer = 0;

/** After every connection: list the projects and open the one of the address, else the first. */
async function connected(link) {
  const from = { ...initial, ...link };
  initial = {};
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
  setState({ watching: watch.ok, tree: status.ok ? status.data.exists : null });
  if (isSame && place.documentId) {
    await resend();
    if (!isScratch()) await fileChanged();
    refresh("elsewhere");
  } else {
    wantedPiece = place.piece;
    await loadDocuments(from);
  }
  openTab(place.tab);
  writeAddress();
}

async function leaveProject() {
  if (openProjectId) await invoke("context:creonow:watch:stop", { projectId: openProjectId });
  clear();
  clearMap();
  if (openProjectId) Object.assign(place, { documentId: "", cursor: 0, anchor: 0, pinned: [], piece: "" });
}

/** List the documents; unless one is open, open the address's, or the last one. */
async function loadDocuments(from = {}) {
  const listed = await invoke("context:document:list", { projectId: place.projectId });
  if (!listed.ok) return;
  const documents = listed.data.items.map((one) => one.documentId);
  setState({ documents });
  const wanted = from.documentId ?? place.documentId;
  if (place.documentId && place.documentId === wanted && documents.includes(wanted) && !from.documentId) return;
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
  if (inspection.shown.result.notices.some((one) => one.code === "RETRIEVAL_INDEXING")) indexTimer = setTimeout(() => refresh("elsewhere"), INDEX_MS);
}

/** Go to the piece of a source or, if the prompt has none, to its text. */
function showSource(sourceRef) {
  const piece = pieceOf(inspection.shown.result, sourceRef);
  if (piece) return showPiece(piece.address);
  return openDocument(sourceRef.replace(/#.*$/, ""));
}

/** Open the piece of the address once it is known. */
function openWanted() {
  if (!wantedPiece) return;
  const piece = wantedPiece;
  wantedPiece = "";
  showPiece(piece);
}

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
  when("inspected", () => {
    showText();
    followBudget();
    awaitIndex();
    openWanted();
  });
  when("open", ({ documentId, cursor, anchor }) => openDocument(documentId, { cursor, anchor }));
  when("subjects", async () => {
    await loadSubjects();
    signal("subjects-loaded");
    refresh();
  });
  when("address", async (found) => {
    if (found.projectId && found.projectId !== place.projectId) return openProject(found.projectId, found);
    if (found.documentId && found.documentId !== place.documentId) await openDocument(found.documentId, found);
    go({ ...(found.skillId ? { skillId: found.skillId } : {}), ...(found.pinned ? { pinned: found.pinned } : {}) });
    if (found.tab) openTab(found.tab);
    if (found.piece) showPiece(found.piece);
    return undefined;
  });
  when("typed", () => refresh());
  when("source", showSource);
}

prepare(sendTyped);
listenToPanes();
initial = readAddress();
await loadCodes();
makeManuscript();
makeDrawer([
  { id: "budget-box", title: "budget", show: showBudgetForm },
  { id: "rules-box", title: "rulesBox", show: showRules },
  { id: "ai-box", title: "ai", show: showBackends },
  { id: "usage-box", title: "usage", show: showUsage },
  { id: "developer-box", title: "developer", show: showDeveloper },
  { id: "export-box", title: "exportBox", show: showExport },
]);
for (const listenTo of [listenToStates, listenToTabs, listenToQuestion, listenToCard, listenToDrawer, listenToRun, listenToSkills, listenToWriteDown, listenToKeys]) listenTo();
listen();
translate();
showStates();
enableRun();
stayConnected(connected);
