// What an Electron main process imports.
export { createBridge, preloadPath } from "./bridge.mjs";
export { EVENTS, OWNER_CHANNELS, RENDERER_CHANNELS } from "./channels.mjs";
export { spawnDaemon } from "./daemon.mjs";
export { DaemonError } from "./errors.mjs";
export { DEFAULT_ORIGINS } from "./origins.mjs";
