// A page of that app; compiled, never run here.
/// <reference types="@creonow/electron/preload" />

async function listProjects(): Promise<readonly string[]> {
  const listed = await window.creonow.invoke("project:list");
  if (!listed.ok) {
    if (listed.error.code === "DISCONNECTED") return listProjects();
    throw new Error(listed.error.message);
  }
  return listed.data.items.map((project) => project.name);
}

async function createProject(name: string): Promise<string | undefined> {
  const made = await window.creonow.invoke("project:create", { name }, { key: "create" });
  return made.ok ? made.data.projectId : undefined;
}

async function openFolder(): Promise<string | undefined> {
  const chosen = await window.creonow.chooseProject();
  return chosen.ok ? chosen.data.rootPath : undefined;
}

async function assemble(projectId: string, editor: { text: string; cursor: number }): Promise<string> {
  const documentId = "第一章.md";
  await window.creonow.invoke("context:document:sync", { projectId, documentId, version: 1, text: editor.text });
  const assembled = await window.creonow.invoke("context:assemble", {
    projectId,
    documentId,
    cursorPosition: editor.cursor,
    skillId: "builtin:continue",
  });
  return assembled.ok ? assembled.data.prompt : assembled.error.code;
}

const unwatch = window.creonow.on("context:creonow:changed", ({ paths, layers }) => console.log(paths, layers));
const forget = window.creonow.on("$/restarted", () => void listProjects());

async function mistakes(): Promise<void> {
  // @ts-expect-error only the main process grants
  await window.creonow.invoke("session:grant", { role: "renderer" });
  // @ts-expect-error a page shapes no connection
  await window.creonow.invoke("initialize", {});
  // @ts-expect-error rootPath is a string
  await window.creonow.invoke("project:create", { rootPath: 7 });
  // @ts-expect-error the data is there only if it went well
  (await window.creonow.invoke("app:ping")).data;
  // @ts-expect-error nothing of Electron is in the page
  window.creonow.send("app:ping");
}

void [createProject, openFolder, assemble, mistakes, forget, unwatch];
