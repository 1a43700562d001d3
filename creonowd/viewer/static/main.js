// The page: what is chosen, what the daemon says about it, and when to ask again.

import { connect, invoke, on } from "./creonow.js";
import { byId, fill, h } from "./dom.js";
import { editor } from "./editing.js";
import { clearWarnings, showDifference, showRedaction, showSummary, showTrim } from "./evidence.js";
import { showBars, showLayers } from "./layers.js";
import { spell, switchLanguage, word } from "./words.js";

const PAUSE_MS = 150;
const RETRY_MS = 1500;
const state = { projectId: "", result: null, previous: null, real: null, profile: null, runId: null, asking: 0, edit: null, answers: {} };
let timer = 0;

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.get("token")) sessionStorage.setItem("token", given.get("token"));
  if (given.get("project")) sessionStorage.setItem("project", given.get("project"));
  history.replaceState(null, "", location.pathname);
}

async function open() {
  badge("connecting", "");
  try {
    await connect(sessionStorage.getItem("token") ?? "", lost);
  } catch (error) {
    if (error.code === "UNAUTHENTICATED") stuck(word("tokenGone"));
    return;
  }
  badge("connected", "good");
  tell("");
  const renewed = await invoke("viewer:open", {});
  if (renewed.ok) sessionStorage.setItem("token", renewed.data.token);
  await loadProjects();
}

function lost() {
  badge("disconnected", "bad");
  if (!byId("state").classList.contains("bad")) stuck(word("lost"));
  setTimeout(open, RETRY_MS);
}

async function loadProjects() {
  const listed = await invoke("project:list", {});
  const projects = listed.ok ? listed.data.items : [];
  fill(byId("project"), ...projects.map((one) => h("option", { value: one.projectId }, one.name)));
  const wanted = sessionStorage.getItem("project");
  const chosen = projects.find((one) => one.projectId === wanted) ?? projects[0];
  if (!chosen) return say(word("noProject"));
  byId("project").value = chosen.projectId;
  await chooseProject(chosen.projectId);
}

async function chooseProject(projectId) {
  Object.assign(state, { projectId, previous: null, real: null });
  sessionStorage.setItem("project", projectId);
  state.edit = editor(projectId, refresh, tell);
  const [documents, skills, model] = await Promise.all([
    invoke("context:document:list", { projectId }),
    invoke("skill:list", { projectId }),
    invoke("ai:config:get", { projectId }),
    invoke("context:creonow:watch:start", { projectId }),
    loadProfile(),
    state.edit.constraints(),
    state.edit.budget(),
  ]);
  state.answers = model.ok ? { provider: model.data.provider, model: model.data.model } : {};
  const ids = documents.ok ? documents.data.items.map((one) => one.documentId) : [];
  fill(byId("documents"), ...ids.map((id) => h("option", { value: id })));
  if (!ids.includes(byId("document").value)) await chooseDocument(ids.at(-1));
  const listed = skills.ok ? skills.data.items ?? skills.data.skills : [];
  fill(byId("skill"), h("option", { value: "general" }, "general"), ...listed.filter((one) => !one.error).map((one) => h("option", { value: one.id }, one.name ?? one.id)));
  byId("skill").value = listed.some((one) => one.id === "builtin:continue") ? "builtin:continue" : "general";
  await refresh();
}

/** Put the cursor at the end of a document, where the author most likely is. */
async function chooseDocument(documentId) {
  byId("document").value = documentId ?? "";
  if (!documentId) return;
  const listed = await invoke("context:document:list", { projectId: state.projectId, documentId });
  const found = listed.ok && listed.data.items.find((one) => one.documentId === documentId);
  if (found) byId("cursor").value = String(found.length ?? 0);
}

async function loadProfile() {
  const found = await invoke("context:budget:get", { projectId: state.projectId });
  if (!found.ok) return;
  state.profile = found.data;
  byId("slider").value = String(found.data.totalBudgetTokens);
  byId("slider-value").textContent = String(found.data.totalBudgetTokens);
}

/** Ask again soon; a burst of reasons asks once. */
function refresh() {
  clearTimeout(timer);
  return new Promise((done) => { timer = setTimeout(() => inspect().then(done), PAUSE_MS); });
}

function request() {
  const input = byId("input").value;
  return {
    projectId: state.projectId,
    documentId: byId("document").value,
    cursorPosition: Math.max(0, Math.floor(Number(byId("cursor").value) || 0)),
    skillId: byId("skill").value,
    ...(input ? { additionalInput: input } : {}),
  };
}

function whatIf() {
  const asked = {};
  const total = Number(byId("slider").value);
  const { profile } = state;
  if (profile && total !== profile.totalBudgetTokens) {
    asked.profile = { contextWindowTokens: total + profile.systemPromptTokens + profile.outputReserveTokens };
  }
  if (byId("scratch").value) asked.text = byId("scratch").value;
  return Object.keys(asked).length ? { whatIf: asked } : {};
}

async function inspect() {
  if (!state.projectId || byId("panel").hidden) return;
  if (!byId("document").value) return say(word("noDocument"));
  state.asking += 1;
  const mine = state.asking;
  if (!state.result) say(word("loading"));
  const answer = await invoke("context:inspect", { ...request(), ...state.answers, debugMode: true, ...whatIf() });
  if (mine !== state.asking) return;
  if (!answer.ok) return stuck(word("failed", `${answer.error.code} ${answer.error.message}`));
  if (!answer.data.inspectMeta.whatIf && answer.data.promptHash !== state.real?.promptHash) {
    state.previous = state.real;
    state.real = answer.data;
  }
  state.result = answer.data;
  show();
}

function show() {
  const { result } = state;
  if (!result) return;
  say("");
  byId("contents").hidden = false;
  clearWarnings();
  showSummary(result);
  showBars(result);
  showLayers(result, byId("search").value.trim());
  showTrim(result);
  showRedaction(result);
  showDifference(result.inspectMeta.whatIf ? state.real : state.previous, result);
}

async function run() {
  const { additionalInput, ...place } = request();
  state.runId = `run_${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`;
  byId("output").textContent = "";
  byId("verdict").textContent = word("running");
  busy(true);
  const payload = { ...place, runId: state.runId, stream: true, ...(additionalInput ? { input: additionalInput } : {}) };
  const answer = await invoke("ai:skill:run", payload);
  busy(false);
  state.runId = null;
  if (!answer.ok) {
    byId("verdict").textContent = word("failed", `${answer.error.code} ${answer.error.message}`);
    return;
  }
  byId("output").textContent = answer.data.output;
  byId("verdict").textContent = judged(answer.data.verdict);
  await refresh();
}

function judged(verdict) {
  if (!verdict) return "";
  const parts = [];
  if (verdict.violations?.length) parts.push(word("violations", verdict.violations.length));
  if (verdict.unchecked?.length) parts.push(word("unchecked", verdict.unchecked.length));
  return parts.join(" · ") || word("passed");
}

function busy(running) {
  byId("run").disabled = running;
  byId("cancel").hidden = !running;
}

function exportJson() {
  const report = { exportedFrom: "creonowd", request: request(), profile: state.profile, inspect: state.result, previous: state.previous };
  const blob = new Blob([JSON.stringify(report, null, 2)], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(blob), download: "creonow-context.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function badge(name, tone) {
  byId("connection").textContent = word(name);
  byId("connection").className = `badge ${tone}`;
  byId("connection").dataset.state = name;
}

function say(text) {
  byId("state").className = "state";
  byId("state").textContent = text;
}

function stuck(text) {
  byId("state").className = "state bad";
  byId("state").textContent = text;
  if (byId("panel").hidden) tell(text);
}

function tell(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
}

function setPanel(isOpen) {
  byId("panel").hidden = !isOpen;
  byId("toggle").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) refresh();
}

function listen() {
  byId("project").addEventListener("change", (event) => chooseProject(event.target.value));
  for (const id of ["cursor", "skill", "input"]) byId(id).addEventListener("input", refresh);
  byId("document").addEventListener("change", async () => {
    await chooseDocument(byId("document").value);
    refresh();
  });
  for (const id of ["slider", "scratch"]) byId(id).addEventListener("input", () => {
    byId("slider-value").textContent = byId("slider").value;
    refresh();
  });
  byId("what-if-reset").addEventListener("click", async () => {
    byId("scratch").value = "";
    await loadProfile();
    refresh();
  });
  byId("search").addEventListener("input", () => state.result && showLayers(state.result, byId("search").value.trim()));
  byId("toggle").addEventListener("click", () => setPanel(byId("panel").hidden));
  byId("run").addEventListener("click", run);
  byId("cancel").addEventListener("click", () => state.runId && invoke("ai:skill:cancel", { runId: state.runId }));
  byId("export").addEventListener("click", exportJson);
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  byId("language").addEventListener("click", async () => {
    switchLanguage();
    spell();
    badge(byId("connection").dataset.state, byId("connection").className.replace("badge", "").trim());
    show();
    if (state.edit) await Promise.all([state.edit.constraints(), state.edit.budget()]);
  });
  on("ai:skill:stream", (event) => { if (event.runId === state.runId && event.delta) byId("output").append(event.delta); });
  on("context:creonow:changed", async (event) => {
    if (event.projectId && event.projectId !== state.projectId) return;
    if (event.paths?.some((path) => path.endsWith("constraints.json"))) await state.edit.constraints();
    refresh();
  });
}

setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
spell();
readAddress();
listen();
open();
