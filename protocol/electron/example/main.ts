// The main process of an app that uses the daemon; compiled, never run here.
import { join } from "node:path";
import { app, BrowserWindow, dialog, ipcMain } from "electron";
import { createBridge, DaemonError, spawnDaemon } from "@creonow/electron";
import type { Daemon, ErrorCode } from "@creonow/electron";

async function start(): Promise<void> {
  await app.whenReady();
  const daemon = await spawnDaemon({
    userData: join(app.getPath("userData"), "creonow"),
    locale: app.getLocale(),
    onStderr: (line) => console.error(line),
  });
  console.log(`creonowd from ${daemon.executable.origin}: ${daemon.executable.path}`);
  const bridge = createBridge(ipcMain, daemon, {
    chooseFolder: async () => (await dialog.showOpenDialog({ properties: ["openDirectory"] })).filePaths[0],
  });
  const window = new BrowserWindow({ webPreferences: bridge.webPreferences });
  await window.loadFile("index.html");

  app.on("before-quit", (event) => {
    if (daemon.state === "stopped") return;
    event.preventDefault();
    void daemon.stop().then(() => app.quit());
  });
}

export async function openNovel(daemon: Daemon, rootPath: string): Promise<string> {
  const project = await daemon.call("project:create", { rootPath }, { timeoutMs: 5000 });
  await daemon.call("project:setCurrent", { projectId: project.projectId });
  const listed = await daemon.invoke("project:list");
  return listed.ok ? `${listed.data.items.length}` : listed.error.code;
}

export function offerKnowledge(daemon: Daemon): Promise<unknown> {
  daemon.handle("context:source:fetch", async ({ name, limit }, { signal }) => {
    signal.throwIfAborted();
    return { chunks: [{ source: `${name}:林远`, content: "林远怕水。", score: 0.9 }].slice(0, limit) };
  });
  return daemon.call("context:source:register", { layer: "retrieved", name: "kg", kind: "kg" });
}

export function explain(error: unknown): ErrorCode | "bug" {
  if (!(error instanceof DaemonError)) return "bug";
  return error.retryable ? "TIMEOUT" : error.code;
}

export function follow(daemon: Daemon): () => void {
  const forget = daemon.on("$/restarted", ({ restored }) => {
    for (const entry of restored) if (!entry.ok) console.warn(entry.channel, entry.error.code);
  });
  daemon.onState((state) => state === "failed" && void daemon.restart());
  return forget;
}

export function mistakes(daemon: Daemon): void {
  // @ts-expect-error there is no such channel
  void daemon.call("app:pong");
  // @ts-expect-error the payload is required
  void daemon.call("project:setCurrent");
  // @ts-expect-error the handshake is spawnDaemon's
  void daemon.call("initialize", {});
  // @ts-expect-error the option is executable
  void spawnDaemon({ command: "creonowd" });
  // @ts-expect-error there is no such event
  daemon.on("$/reborn", () => {});
  // @ts-expect-error a bridge needs a daemon
  createBridge(ipcMain);
}

void start();
