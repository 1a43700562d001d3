// A fake of the module `electron`: enough of an app to run the README's main process.
// The page that it loads calls the daemon, prints the answer, and quits.
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { makeIpcMain, openWindow } from "./electron.mjs";

export const ipcMain = makeIpcMain();

export const app = Object.assign(new EventEmitter(), {
  whenReady: () => Promise.resolve(),
  getPath: () => join(process.cwd(), "app data"),
  exit: (status) => process.exit(status),
  quit() {
    let prevented = false;
    const preventDefault = () => {
      prevented = true;
    };
    app.emit("before-quit", { preventDefault });
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
