// The main process of the app under test: the README's, with the harness's channels and its parts in reach.
import { join } from "node:path";
import { app, BrowserWindow, ipcMain, protocol } from "electron";
import { createBridge, EVENTS, RENDERER_CHANNELS, spawnDaemon } from "@creonow/electron";

const E2E_CHANNELS = ["e2e:echo", "e2e:sleep", "e2e:notify"];
const page = join(import.meta.dirname, "index.html");

protocol.registerSchemesAsPrivileged([{ scheme: "app", privileges: { standard: true, secure: true } }]);

async function start() {
  app.setPath("userData", join(process.env.CREONOW_USER_DATA_DIR, ".."));
  protocol.handle("app", () => new Response("<!doctype html><title>app</title>", { headers: { "content-type": "text/html" } }));
  const faults = [];
  const daemon = await spawnDaemon({
    userData: process.env.CREONOW_USER_DATA_DIR,
    env: { CREONOW_E2E: "1", CREONOW_WARM_UP: "false" },
    onFault: (error) => faults.push(String(error)),
  });
  const bridge = createBridge(ipcMain, daemon, {
    allow: [...RENDERER_CHANNELS, ...E2E_CHANNELS],
    events: [...EVENTS, "novel:changed"],
  });
  const open = async (url) => {
    const window = new BrowserWindow({ show: false, webPreferences: bridge.webPreferences });
    await (url ? window.loadURL(url) : window.loadFile(page));
    return window.id;
  };
  globalThis.underTest = { daemon, open, faults, page };

  app.on("before-quit", (event) => {
    if (daemon.state === "stopped") return;
    event.preventDefault();
    daemon.stop().then(() => app.quit());
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => app.quit());
  await open();
}

app.whenReady().then(start).catch((error) => {
  console.error(error);
  app.exit(1);
});
