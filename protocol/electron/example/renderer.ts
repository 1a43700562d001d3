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

async function createProject(rootPath: string): Promise<string | undefined> {
  const made = await window.creonow.invoke("project:create", { rootPath }, { key: "create" });
  return made.ok ? made.data.projectId : undefined;
}

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

void [createProject, mistakes, forget];
