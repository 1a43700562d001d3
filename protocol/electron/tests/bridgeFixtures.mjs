// What tests of the bridge hold: a window over a daemon, and what they ask of its envelopes.
import assert from "node:assert/strict";
import { createBridge, EVENTS, RENDERER_CHANNELS } from "@creonow/electron";
import { makeIpcMain, openWindow } from "./electron.mjs";

const SOME_E2E = ["e2e:echo", "e2e:echoInTask", "e2e:sleep", "e2e:notify", "e2e:callback", "e2e:fail"];
export const HARNESS = { allow: [...RENDERER_CHANNELS, ...SOME_E2E], events: [...EVENTS, "novel:changed"] };

/** A bridge over this daemon and a window that uses it; both end with the test. */
export function bridged(t, daemon, options = HARNESS, url) {
  const ipcMain = makeIpcMain();
  const bridge = createBridge(ipcMain, daemon, options);
  t.after(() => ipcMain.handlers.size && bridge.dispose());
  return { ipcMain, bridge, window: openWindow(ipcMain, bridge.webPreferences, url) };
}

/** Resolve with the fields of the next event. */
export function next(window, event) {
  return new Promise((resolve) => {
    const forget = window.creonow.on(event, (fields) => resolve(forget() ?? fields));
  });
}

/** The same daemon, with every token that it grants written down. */
export function overheard(daemon, tokens) {
  return {
    settings: daemon.settings,
    handler: (method) => daemon.handler(method),
    info: daemon.info,
    ready: () => daemon.ready(),
    onState: (watcher) => daemon.onState(watcher),
    invoke: (...request) => daemon.invoke(...request),
    async call(channel, ...rest) {
      const result = await daemon.call(channel, ...rest);
      if (channel === "session:grant") tokens.push(result.token);
      return result;
    },
  };
}

export function assertFailure(envelope, code) {
  assert.deepEqual([envelope.ok, envelope.error?.code], [false, code]);
  const known = Object.keys(envelope.error).filter((key) => !["code", "message", "details"].includes(key));
  assert.deepEqual([Object.keys(envelope), known], [["ok", "error"], []]);
  assert.notEqual(envelope.error.message, "");
}
