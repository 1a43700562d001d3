// The one gateway between pages and the daemon: checks the page and the channel, answers an envelope.
// Uses Electron's objects only through the few members that `IpcMainLike` declares.
import { fileURLToPath } from "node:url";
import { FORBIDDEN_CHANNELS, EVENTS, RENDERER_CHANNELS } from "./channels.mjs";
import { DaemonError, envelope } from "./errors.mjs";
import { DEFAULT_ORIGINS, originCheck } from "./origins.mjs";
import { Page } from "./page.mjs";
import { RESTARTED } from "./session.mjs";

const GATEWAY = "creonow:invoke";
const EVENT = "creonow:event";
const LONGEST_NAME = 200;

/** The preload script; it requires nothing but Electron, so it runs in a sandbox. */
export const preloadPath = fileURLToPath(new URL("./preload.cjs", import.meta.url));

/**
 * Let pages call the daemon through `window.creonow`.
 *
 * A page calls with a renderer's rights over a connection of its own. A channel in `allow` that only
 * owners may call is called with the rights of the main process: list it only if every page may do that.
 */
export function createBridge(ipcMain, daemon, options = {}) {
  const bridge = new Bridge(daemon, options);
  ipcMain.handle(GATEWAY, (event, ...request) => envelope(bridge.answer(event, ...request)));
  return {
    webPreferences: bridge.webPreferences,
    dispose() {
      ipcMain.removeHandler(GATEWAY);
      bridge.close();
    },
  };
}

class Bridge {
  #daemon;
  #chooseFolder;
  #channels;
  #allowed;
  #events;
  #checkOrigin;
  #pages = new Map();
  #watched = new WeakSet();
  #ownRequests = new Map([
    ["$/page", () => null],
    ["$/cancel", (page, { key }) => page.cancel(key)],
    ["$/subscribe", (page, { event }) => page.subscribe(this.#checkEvent(event)) ?? null],
    ["$/unsubscribe", (page, { event }) => page.unsubscribe(event) ?? null],
    ["$/chooseProject", (_page, { name }, event) => this.#chooseProject(event, name)],
  ]);

  constructor(daemon, { allow = RENDERER_CHANNELS, events = EVENTS, origins = DEFAULT_ORIGINS, chooseFolder }) {
    const forbidden = allow.find((channel) => FORBIDDEN_CHANNELS.includes(channel));
    if (forbidden) throw new TypeError(`No page may call ${forbidden}; call it from the main process.`);
    this.#daemon = daemon;
    this.#chooseFolder = chooseFolder;
    this.#channels = [...allow];
    this.#allowed = new Set(allow);
    this.#events = new Set([...events, RESTARTED]);
    this.#checkOrigin = originCheck(origins);
    this.webPreferences = preferences(allow, events);
  }

  async answer(event, channel, payload, call) {
    this.#checkOrigin(event);
    const request = this.#ownRequests.get(channel);
    if (request === undefined && !this.#allowed.has(channel)) throw forbidden(channel);
    const page = this.#page(event.sender, call?.page);
    return request ? request(page, payload ?? {}, event) : page.call(channel, payload, call?.key);
  }

  close() {
    for (const page of this.#pages.values()) page.close();
    this.#pages.clear();
  }

  /** Make the folder a project that the user chose in a dialogue of the main process; a page names no path. */
  async #chooseProject(event, name) {
    if (!this.#chooseFolder) throw new DaemonError("IPC_CHANNEL_FORBIDDEN", "The app has no `chooseFolder`.");
    const rootPath = await this.#chooseFolder(event);
    if (!rootPath) throw new DaemonError("CANCELED", "No folder was chosen.");
    return this.#daemon.call("project:create", typeof name === "string" ? { rootPath, name } : { rootPath });
  }

  #checkEvent(event) {
    if (this.#events.has(event)) return event;
    throw new DaemonError("IPC_CHANNEL_FORBIDDEN", `There is no event ${quote(event)}.`);
  }

  #page(sender, id) {
    const previous = this.#pages.get(sender);
    if (previous && previous.id === id) return previous;
    previous?.close();
    const page = new Page(id, this.#daemon, this.#channels, (...message) => send(sender, ...message));
    this.#pages.set(sender, page);
    this.#closeWithSender(sender);
    return page;
  }

  /** Close the page with its window, or when its process has died; the window may load another then. */
  #closeWithSender(sender) {
    if (!sender?.on || this.#watched.has(sender)) return;
    this.#watched.add(sender);
    for (const end of ["destroyed", "render-process-gone"]) {
      sender.on(end, () => {
        this.#pages.get(sender)?.close();
        this.#pages.delete(sender);
      });
    }
  }
}

function preferences(allow, events) {
  const additionalArguments = [];
  if (allow !== RENDERER_CHANNELS) additionalArguments.push(`--creonow-allow=${allow.join(",")}`);
  if (events !== EVENTS) additionalArguments.push(`--creonow-events=${events.join(",")}`);
  return Object.freeze({
    preload: preloadPath,
    additionalArguments,
    contextIsolation: true,
    nodeIntegration: false,
    sandbox: true,
  });
}

function send(sender, event, fields) {
  if (!sender?.isDestroyed?.()) sender?.send(EVENT, event, fields);
}

function forbidden(channel) {
  return new DaemonError("IPC_CHANNEL_FORBIDDEN", `There is no channel ${quote(channel)}.`);
}

function quote(name) {
  return typeof name === "string" ? JSON.stringify(name.slice(0, LONGEST_NAME)) : `of type ${typeof name}`;
}
