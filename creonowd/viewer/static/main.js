// The page: puts its parts together and passes events between them.

import { loadBudget, showBudget } from "./budget.js";
import { readAddress, stayConnected } from "./connection.js";
import { loadConstraints, showConstraints } from "./constraints.js";
import { byId } from "./dom.js";
import * as editorState from "./editorState.js";
import { jump } from "./fragments.js";
import * as inspector from "./inspector.js";
import { download } from "./report.js";
import { initialize, invoke, on } from "./rpc.js";
import { setStatus, showConnection, showStatus } from "./status.js";
import { loadCodes, locale, string, switchLanguage, translatePage } from "./strings.js";
import { loadUsage, showUsage } from "./usage.js";
import { showVerdict } from "./verdict.js";

const CONSTRAINTS = ".creonow/rules/constraints.json";
let openProjectId = "";

/** Show the project that was chosen; perhaps the same one again after the connection was lost. */
async function openProject() {
  const projectId = editorState.projectId();
  if (openProjectId !== projectId) inspector.clear();
  openProjectId = projectId;
  setStatus("loading", () => (byId("inspector").hidden ? "" : string("loading")));
  // Watch first: a file that changes after it was read must not go unnoticed.
  const watch = await invoke("context:creonow:watch:start", { projectId });
  await Promise.all([
    loadBudget(projectId, budgetChanged),
    loadConstraints(projectId, inspector.refresh),
    loadUsage(projectId),
  ]);
  showWatching(watch.ok);
  inspector.refresh();
}

function budgetChanged() {
  inspector.followBudget();
  inspector.refresh();
}

function showWatching(isWatched) {
  byId("unwatched").hidden = isWatched;
}

async function filesChanged(event) {
  if (event.projectId !== editorState.projectId()) return;
  if (event.watching === false) showWatching(false);
  if (event.paths.includes(CONSTRAINTS)) await loadConstraints(event.projectId, inspector.refresh);
  if (event.paths.some((path) => !path.startsWith(".creonow/"))) await editorState.loadDocuments();
  inspector.refresh();
}

function connectionLost() {
  editorState.enable();
  inspector.markOutdated(() => string("lost"));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  byId("theme").textContent = string(theme === "dark" ? "toLight" : "toDark");
}

const theme = () => document.documentElement.dataset.theme;

function setInspector(isOpen) {
  byId("inspector").hidden = !isOpen;
  byId("hint").hidden = isOpen;
  byId("toggle").setAttribute("aria-expanded", String(isOpen));
  byId("toggle").textContent = string(isOpen ? "hideInspector" : "showInspector");
  showStatus();
  if (isOpen) inspector.refresh();
}

/** Show the whole page in the current language. */
function showAll() {
  translatePage();
  showConnection(byId("connection").dataset.state ?? "connecting");
  setTheme(theme());
  byId("toggle").textContent = string(byId("inspector").hidden ? "showInspector" : "hideInspector");
  editorState.showSkills();
  showVerdict();
  showConstraints();
  showBudget();
  showUsage();
  showStatus();
  inspector.show();
}

function listen() {
  editorState.listen(openProject, inspector.refresh);
  byId("toggle").addEventListener("click", () => setInspector(byId("inspector").hidden));
  byId("slider").addEventListener("input", () => {
    inspector.showSliderValue();
    inspector.refresh();
  });
  byId("scratch").addEventListener("input", inspector.refresh);
  byId("what-if-reset").addEventListener("click", () => {
    inspector.resetWhatIf();
    inspector.refresh();
  });
  byId("search").addEventListener("input", inspector.showFragments);
  byId("jumps").addEventListener("input", (event) => {
    if (jump(event.target.value)) event.target.value = "";
  });
  byId("export").addEventListener("click", () => download());
  byId("export-texts").addEventListener("click", () => download({ texts: true }));
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  byId("language").addEventListener("click", async () => {
    switchLanguage();
    showAll();
    await initialize(locale());
    inspector.refresh();
  });
  on("context:creonow:changed", filesChanged);
}

setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
readAddress();
await loadCodes();
showAll();
listen();
stayConnected(() => editorState.load(openProject), connectionLost);
