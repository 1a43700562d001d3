// Stand-ins for the objects of Electron that the package touches; they copy messages as Electron does.
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import vm from "node:vm";

export const APP_PAGE = "app://creonow/index.html";

/** `ipcMain`: one handler per name, a second one is an error. */
export function makeIpcMain() {
  const handlers = new Map();
  return {
    handlers,
    handle(name, handler) {
      if (handlers.has(name)) throw new Error(`Attempted to register a second handler for '${name}'`);
      handlers.set(name, handler);
    },
    removeHandler: (name) => handlers.delete(name),
  };
}

/**
 * A window whose sandbox runs the preload script.
 *
 * `asked` are the channels that left the page, `seen` is all that reached it.
 */
export function openWindow(ipcMain, { preload, additionalArguments = [] }, url = APP_PAGE) {
  const contents = Object.assign(new EventEmitter(), { isDestroyed: () => false });
  const window = { contents, seen: [], asked: [], complaints: [], frame: { url, parent: null } };
  window.load = () => loadPage(window, ipcMain, preload, additionalArguments);
  window.load();
  return window;
}

function loadPage(window, ipcMain, preload, additionalArguments) {
  const incoming = new EventEmitter();
  window.contents.send = (name, ...message) => {
    window.seen.push(structuredClone(message));
    incoming.emit(name, { sender: "never for the page" }, ...structuredClone(message));
  };
  const electron = {
    contextBridge: { exposeInMainWorld: (name, api) => (window[name] = api) },
    ipcRenderer: {
      on: (name, listener) => incoming.on(name, listener),
      invoke: (name, ...request) => invoke(window, ipcMain, name, request),
    },
  };
  const console = { error: (complaint) => window.complaints.push(complaint) };
  runInSandbox(preload, electron, ["renderer", ...additionalArguments], console);
}

async function invoke(window, ipcMain, name, request) {
  const event = { sender: window.contents, senderFrame: window.frame };
  const copied = structuredClone(request);
  window.asked.push(copied[0]);
  const handler = ipcMain.handlers.get(name);
  if (!handler) throw new Error(`No handler registered for '${name}'`);
  const answer = structuredClone(await handler(event, ...copied));
  window.seen.push(answer);
  return answer;
}

/** Run a preload as Electron's sandbox does: a function around it, and nothing to require. */
function runInSandbox(path, electron, argv, console) {
  const wrapped = `(function (require, process, exports, module) {${readFileSync(path, "utf8")}\n})`;
  const require = (name) => {
    if (name !== "electron") throw new Error(`module not found: ${name}`);
    return electron;
  };
  const module = { exports: {} };
  vm.runInNewContext(wrapped, { console }, { filename: path })(require, { argv }, module.exports, module);
}
