// Fakes of the Electron objects that the package uses; they copy messages as Electron does.
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { types } from "node:util";
import vm from "node:vm";

const DEEPEST = 1000;

export const APP_PAGE = "app://creonow/index.html";

/** Make an `ipcMain`: one handler per name, a second one is an error. */
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
 * Open a window whose sandbox runs the preload script.
 *
 * `asked` lists the channels that the page called, `seen` all that reached it.
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
    contextBridge: {
      exposeInMainWorld: (name, api) => Object.assign(window, { [name]: cross(api) }),
      executeInMainWorld: ({ func, args }) => runInPage(window, func, args),
    },
    ipcRenderer: {
      on: (name, listener) => incoming.on(name, listener),
      invoke: (name, ...request) => invoke(window, ipcMain, name, request),
    },
  };
  const console = { error: (complaint) => window.complaints.push(complaint) };
  runInSandbox(preload, electron, ["renderer", ...additionalArguments], console);
}

/** Run a function in the page's world: its text is carried over, its arguments cross as any value. */
function runInPage(window, func, given) {
  const page = {};
  new Function("globalThis", `return (${func})`)(page)(...given.map((each) => cross(each)));
  Object.assign(window, page);
}

/**
 * Carry a value from one world into the other as `contextBridge` does: objects are copied without
 * their prototypes, functions and promises stay where they are and are called from afar, an error
 * keeps its message. A Proxy, and what is nested too deeply, is thrown; what it cannot look into
 * (a Blob, a getter that throws) arrives as an empty object.
 */
function cross(value, copies = new Map(), depth = 0) {
  if (types.isProxy(value) || depth > DEEPEST) throw new Error("An object could not be cloned.");
  if (value instanceof Blob) return {};
  if (typeof value === "function") return (...given) => crossResult(() => value(...given.map((each) => cross(each))));
  if (types.isPromise(value)) return value.then((settled) => cross(settled), throwMessageOf);
  if (!["[object Object]", "[object Array]"].includes(Object.prototype.toString.call(value))) return value;
  if (copies.has(value)) return copies.get(value);
  const copy = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    let held;
    try {
      held = value[key];
    } catch {
      return {};
    }
    copy[key] = cross(held, copies, depth + 1);
  }
  return copy;
}

function crossResult(work) {
  try {
    return cross(work());
  } catch (error) {
    return throwMessageOf(error);
  }
}

function throwMessageOf(error) {
  throw new Error(error.message);
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
