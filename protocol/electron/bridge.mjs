// The one gateway between pages and the daemon: who may ask, what may be asked, always an envelope.
// Knows Electron's objects only by the few members that it uses.
import { fileURLToPath } from "node:url";
import { SEALED_CHANNELS, EVENTS, RENDERER_CHANNELS } from "./channels.mjs";
import { DaemonError, envelope } from "./errors.mjs";
import { Page } from "./page.mjs";
import { DEFAULT_ORIGINS, senderCheck } from "./origins.mjs";
import { RESTARTED } from "./session.mjs";

const GATEWAY = "creonow:invoke";
const EVENT = "creonow:event";
const SPOKEN = 200;

/** The preload script; it stands alone, so it runs in a sandbox. */
export const preloadPath = fileURLToPath(new URL("./preload.cjs", import.meta.url));

/**
 * Let pages call the daemon through `window.creonow`.
 *
 * What a page asks is answered with a renderer's rights over a connection of its own. A channel in
 * `allow` that only owners may call is answered with the rights of the main process: list it only if
 * every page may do that.
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
  #channels;
  #allowed;
  #events;
  #check;
  #pages = new Map();
  #own = new Map([
    ["$/page", () => null],
    ["$/cancel", (page, { key }) => page.cancel(key)],
    ["$/subscribe", (page, { event }) => page.subscribe(this.#listed(event)) ?? null],
    ["$/unsubscribe", (page, { event }) => page.unsubscribe(event) ?? null],
  ]);

  constructor(daemon, { allow = RENDERER_CHANNELS, events = EVENTS, origins = DEFAULT_ORIGINS }) {
    const sealed = allow.find((channel) => SEALED_CHANNELS.includes(channel));
    if (sealed) throw new TypeError(`No page may call ${sealed}; call it from the main process.`);
    this.#daemon = daemon;
    this.#channels = [...allow];
    this.#allowed = new Set(allow);
    this.#events = new Set([...events, RESTARTED]);
    this.#check = senderCheck(origins);
    this.webPreferences = preferences(allow, events);
  }

  async answer(event, channel, payload, call) {
    this.#check(event);
    const own = this.#own.get(channel);
    if (own === undefined && !this.#allowed.has(channel)) throw forbidden(channel);
    const page = this.#page(event.sender, call?.page);
    return own ? own(page, payload ?? {}) : page.call(channel, payload, call?.key);
  }

  close() {
    for (const page of this.#pages.values()) page.close();
    this.#pages.clear();
  }

  #listed(event) {
    if (this.#events.has(event)) return event;
    throw new DaemonError("IPC_CHANNEL_FORBIDDEN", `There is no event ${spoken(event)}.`);
  }

  #page(sender, id) {
    const held = this.#pages.get(sender);
    if (held && held.id === id) return held;
    held?.close();
    const page = new Page(id, this.#daemon, this.#channels, (...message) => tell(sender, ...message));
    this.#pages.set(sender, page);
    if (!held) this.#forgetWhenGone(sender);
    return page;
  }

  #forgetWhenGone(sender) {
    for (const end of ["destroyed", "render-process-gone"]) {
      sender?.once?.(end, () => {
        this.#pages.get(sender)?.close();
        this.#pages.delete(sender);
      });
    }
  }
}

function preferences(allow, events) {
  const changed = [
    ...(allow === RENDERER_CHANNELS ? [] : [`--creonow-allow=${allow.join(",")}`]),
    ...(events === EVENTS ? [] : [`--creonow-events=${events.join(",")}`]),
  ];
  return Object.freeze({
    preload: preloadPath,
    additionalArguments: changed,
    contextIsolation: true,
    nodeIntegration: false,
    sandbox: true,
  });
}

function tell(sender, event, fields) {
  if (!sender?.isDestroyed?.()) sender?.send(EVENT, event, fields);
}

function forbidden(channel) {
  return new DaemonError("IPC_CHANNEL_FORBIDDEN", `There is no channel ${spoken(channel)}.`);
}

function spoken(name) {
  return typeof name === "string" ? JSON.stringify(name.slice(0, SPOKEN)) : `of type ${typeof name}`;
}
