// The status of the page: its connection, what the inspector is doing, the message beside a form.

import { byId } from "./dom.js";
import { string } from "./strings.js";

const TONES = { connected: "good", connecting: "", disconnected: "bad", refused: "bad" };
const STATES = { error: "bad", whatIf: "warn" };
let statusText = () => "";

/** Show the state of the connection. */
export function showConnection(name) {
  const badge = byId("connection");
  badge.textContent = string(name);
  badge.className = `badge ${TONES[name]}`;
  badge.dataset.state = name;
}

export const isConnected = () => byId("connection").dataset.state === "connected";

/** Set what the inspector is doing; `text` is a function, so that it can be shown in another language. */
export function setStatus(kind, text) {
  statusText = text;
  byId("state").dataset.state = kind;
  byId("state").className = `state ${STATES[kind] ?? ""}`;
  showStatus();
}

/** Show the status again, after the language has changed or the inspector was opened. */
export function showStatus() {
  const text = statusText();
  byId("state").textContent = text;
  byId("notice").textContent = text;
  byId("notice").hidden = !text || byId("state").dataset.state !== "error" || !byId("inspector").hidden;
}

/** Show a message beside the form that it is about. */
export function showMessage(element, text, tone) {
  element.textContent = text;
  element.className = `message ${tone}`;
}
