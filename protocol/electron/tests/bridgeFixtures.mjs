// Bridges and windows for tests, and a check of failed envelopes.
import assert from "node:assert/strict";
import { createBridge, EVENTS, RENDERER_CHANNELS } from "@creonow/electron";
import { makeIpcMain, openWindow } from "./electron.mjs";

const E2E_CHANNELS = ["e2e:echo", "e2e:echoInTask", "e2e:sleep", "e2e:notify", "e2e:callback", "e2e:fail"];
/** Options that also allow channels of the harness. */
export const WITH_E2E = { allow: [...RENDERER_CHANNELS, ...E2E_CHANNELS], events: [...EVENTS, "novel:changed"] };

/** Make a bridge to this daemon and a window that uses it; both end with the test. */
export function openBridge(t, daemon, options = WITH_E2E, url) {
  const ipcMain = makeIpcMain();
  const bridge = createBridge(ipcMain, daemon, options);
  t.after(() => ipcMain.handlers.size && bridge.dispose());
  return { ipcMain, bridge, window: openWindow(ipcMain, bridge.webPreferences, url) };
}

/** Resolve with the fields of the next event of this name. */
export function nextEvent(window, event) {
  return new Promise((resolve) => {
    const unsubscribe = window.creonow.on(event, (fields) => {
      unsubscribe();
      resolve(fields);
    });
  });
}

/** Wrap a daemon so that every token it grants is added to `tokens`. */
export function recordTokens(daemon, tokens) {
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

/** Check that an envelope is a failure of this code and contains nothing else. */
export function assertFailure(envelope, code) {
  assert.deepEqual([envelope.ok, envelope.error?.code], [false, code]);
  const unknown = Object.keys(envelope.error).filter((key) => !["code", "message", "details"].includes(key));
  assert.deepEqual([Object.keys(envelope), unknown], [["ok", "error"], []]);
  assert.notEqual(envelope.error.message, "");
}
