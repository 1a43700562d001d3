// A stand-in for the module `electron` itself: enough of an app for the README's main process to run in.
// The page that it loads calls the daemon, prints the answer, and quits.
import { EventEmitter } from "node:events";
import { makeIpcMain, openWindow } from "./electron.mjs";

export const ipcMain = makeIpcMain();

export const app = Object.assign(new EventEmitter(), {
  whenReady: () => Promise.resolve(),
  getPath: () => "where the app's own data would be",
  exit: (status) => process.exit(status),
  quit() {
    let prevented = false;
    app.emit("before-quit", { preventDefault: () => (prevented = true) });
    if (!prevented) process.stdout.write("quit\n");
  },
});

export const dialog = { showErrorBox: (title, content) => process.stdout.write(`${title}: ${content}\n`) };

export class BrowserWindow {
  constructor({ webPreferences }) {
    this.page = openWindow(ipcMain, webPreferences, "file:///app/index.html");
  }

  async loadFile() {
    const answer = await this.page.creonow.invoke("app:ping");
    process.stdout.write(`pong ${answer.data.pong}\n`);
    setImmediate(() => app.quit());
  }
}
