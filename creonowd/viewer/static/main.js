// The page: puts its parts together and tells them when something happened.

import { loadBudget, showBudget } from "./budget.js";
import { loadConstraints, showConstraints } from "./constraints.js";
import { introduce, invoke, on } from "./rpc.js";
import * as desk from "./editorState.js";
import { byId } from "./dom.js";
import { jump } from "./fragments.js";
import { readAddress, stay } from "./connection.js";
import { badge, repeat, say } from "./status.js";
import * as panel from "./inspector.js";
import { download } from "./report.js";
import { repeatVerdict } from "./verdict.js";
import { loadCodes, locale, spell, switchLanguage, word } from "./strings.js";

const CONSTRAINTS = ".creonow/rules/constraints.json";
let opened = "";

/** A project was opened, perhaps the same one again after the connection was lost. */
async function openProject() {
  const projectId = desk.projectId();
  if (opened !== projectId) panel.clear();
  opened = projectId;
  say("loading", () => (byId("panel").hidden ? "" : word("loading")));
  const [watched] = await Promise.all([
    invoke("context:creonow:watch:start", { projectId }),
    loadBudget(projectId, budgetChanged),
    loadConstraints(projectId, panel.refresh),
  ]);
  tellWatching(watched.ok);
  panel.refresh();
}

function budgetChanged() {
  panel.followBudget();
  panel.refresh();
}

function tellWatching(isWatched) {
  byId("unwatched").hidden = isWatched;
}

async function filesChanged(event) {
  if (event.projectId !== desk.projectId()) return;
  if (event.watching === false) tellWatching(false);
  if (event.paths.includes(CONSTRAINTS)) await loadConstraints(event.projectId, panel.refresh);
  if (event.paths.some((path) => !path.startsWith(".creonow/"))) await desk.loadDocuments();
  panel.refresh();
}

function connectionLost() {
  desk.enable();
  panel.outdate(() => word("lost"));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  byId("theme").textContent = word(theme === "dark" ? "toLight" : "toDark");
}

const theme = () => document.documentElement.dataset.theme;

function setPanel(isOpen) {
  byId("panel").hidden = !isOpen;
  byId("hint").hidden = isOpen;
  byId("toggle").setAttribute("aria-expanded", String(isOpen));
  byId("toggle").textContent = word(isOpen ? "hidePanel" : "showPanel");
  repeat();
  if (isOpen) panel.refresh();
}

/** Say everything again in the language that is spoken now. */
function spellAll() {
  spell();
  badge(byId("connection").dataset.state ?? "connecting");
  setTheme(theme());
  byId("toggle").textContent = word(byId("panel").hidden ? "showPanel" : "hidePanel");
  desk.showSkills();
  repeatVerdict();
  showConstraints();
  showBudget();
  repeat();
  panel.show();
}

function listen() {
  desk.listen(openProject, panel.refresh);
  byId("toggle").addEventListener("click", () => setPanel(byId("panel").hidden));
  byId("slider").addEventListener("input", () => {
    panel.tellSlider();
    panel.refresh();
  });
  byId("scratch").addEventListener("input", panel.refresh);
  byId("what-if-reset").addEventListener("click", () => {
    panel.resetWhatIf();
    panel.refresh();
  });
  byId("search").addEventListener("input", panel.find);
  byId("jumps").addEventListener("input", (event) => {
    if (jump(event.target.value)) event.target.value = "";
  });
  byId("export").addEventListener("click", download);
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  byId("language").addEventListener("click", async () => {
    switchLanguage();
    spellAll();
    await introduce(locale());
    panel.refresh();
  });
  on("context:creonow:changed", filesChanged);
}

setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
readAddress();
await loadCodes();
spellAll();
listen();
stay(() => desk.load(openProject), connectionLost);
