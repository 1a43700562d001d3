// What the author has chosen: project, document, cursor, skill, instruction; and running that skill.

import { byId, fill, h } from "./dom.js";
import { invoke, on } from "./rpc.js";
import { isConnected, setStatus } from "./status.js";
import { errorText, string } from "./strings.js";
import { loadUsage } from "./usage.js";
import { setFailure, setRunning, setVerdict } from "./verdict.js";

const state = { projectId: "", documents: [], skills: [], runId: null, attempt: 1 };

export const projectId = () => state.projectId;
export const isListed = (documentId) => state.documents.includes(documentId);

/** Load the projects and open the one that was chosen before, or the first. */
export async function load(opened) {
  const listed = await invoke("viewer:projects", {});
  if (!listed.ok) return setStatus("error", () => errorText(listed.error));
  const projects = listed.data.items;
  fill(byId("project"), ...projects.map((one) => h("option", { value: one.projectId }, one.name)));
  const wanted = sessionStorage.getItem("project");
  const chosen = projects.find((one) => one.projectId === wanted) ?? projects[0];
  if (!chosen) return setStatus("empty", () => string("noProject"));
  byId("project").value = chosen.projectId;
  return choose(chosen.projectId, opened);
}

async function choose(id, opened) {
  if (state.projectId && state.projectId !== id) await invoke("context:creonow:watch:stop", { projectId: state.projectId });
  state.projectId = id;
  sessionStorage.setItem("project", id);
  const [skills] = await Promise.all([invoke("viewer:skills", { projectId: id }), loadDocuments()]);
  state.skills = skills.ok ? skills.data.items : [];
  showSkills();
  enable();
  await opened();
}

/** List the documents; unless one is chosen already, put the cursor at the end of the address's or the last one. */
export async function loadDocuments() {
  const listed = await invoke("context:document:list", { projectId: state.projectId });
  if (!listed.ok) return;
  state.documents = listed.data.items.map((one) => one.documentId);
  fill(byId("documents"), ...state.documents.map((id) => h("option", { value: id })));
  if (!isListed(byId("document").value)) await chooseDocument(firstDocument());
  enable();
}

function firstDocument() {
  const named = sessionStorage.getItem("document");
  sessionStorage.removeItem("document");
  return isListed(named) ? named : state.documents.at(-1) ?? "";
}

async function chooseDocument(documentId) {
  if (!documentId) {
    byId("document").value = "";
    return;
  }
  const listed = await invoke("context:document:list", { projectId: state.projectId, documentId });
  const found = listed.ok && listed.data.items.find((one) => one.documentId === documentId);
  byId("document").value = documentId;
  byId("selection").value = "";
  if (found) byId("cursor").value = String(found.length ?? 0);
}

/** List the skills in the language of the page, keeping the one that is chosen. */
export function showSkills() {
  if (!state.projectId) return;
  const before = byId("skill").value;
  const option = (one) => h("option", { value: one.id, disabled: !one.valid },
    one.valid ? `${one.name} · ${one.id}` : string("invalidSkill", one.id));
  fill(byId("skill"), ...state.skills.map(option), h("option", { value: "general" }, string("general")));
  const ids = [before, "builtin:continue", "general"];
  byId("skill").value = ids.find((id) => id === "general" || state.skills.some((one) => one.id === id && one.valid));
}

/** Return the fields of a request that say where the author is. */
export function place() {
  const number = (id) => Math.max(0, Math.floor(Number(byId(id).value) || 0));
  const [cursorPosition, from] = [number("cursor"), number("selection")];
  return {
    projectId: state.projectId,
    documentId: byId("document").value.trim(),
    cursorPosition,
    skillId: byId("skill").value === "general" ? null : byId("skill").value,
    ...(byId("selection").value && from < cursorPosition ? { selection: { from, to: cursorPosition } } : {}),
  };
}

export const instruction = () => byId("input").value;

async function run(done) {
  state.runId = `run_${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`;
  byId("output").textContent = "";
  setRunning();
  enable();
  const input = instruction() ? { input: instruction() } : {};
  const answer = await invoke("ai:skill:run", { ...place(), ...input, runId: state.runId, stream: true });
  byId("output").dataset.run = state.runId;
  state.runId = null;
  enable();
  if (answer.ok) {
    byId("output").textContent = answer.data.output;
    setVerdict(answer.data);
    await loadUsage(projectId());
  } else {
    setFailure(answer.error);
  }
  await done();
}

function showDelta(event) {
  if (event.runId !== state.runId) return;
  if (event.attempt !== state.attempt) byId("output").textContent = "";
  state.attempt = event.attempt;
  byId("output").append(event.delta);
}

/** Enable what can be used now. */
export function enable() {
  const running = state.runId !== null;
  byId("run").disabled = running || !isConnected() || !state.projectId || !byId("document").value.trim();
  byId("cancel").hidden = !running;
}

/** Listen to the author; calls `opened` when a project was opened and `changed` when a request would differ. */
export function listen(opened, changed) {
  byId("project").addEventListener("change", (event) => choose(event.target.value, opened));
  for (const id of ["cursor", "selection", "skill", "input"]) byId(id).addEventListener("input", changed);
  byId("document").addEventListener("input", enable);
  byId("document").addEventListener("change", async (event) => {
    await chooseDocument(event.target.value.trim());
    enable();
    changed();
  });
  byId("run").addEventListener("click", () => run(changed));
  byId("cancel").addEventListener("click", () => invoke("ai:skill:cancel", { runId: state.runId }));
  on("ai:skill:stream", showDelta);
}
