// What the page says about itself: connection, state of the panel, messages beside a form.

import { byId } from "./dom.js";
import { word } from "./strings.js";

const TONES = { connected: "good", connecting: "", disconnected: "bad", refused: "bad" };
const STATES = { error: "bad", whatIf: "warn" };
let told = () => "";

/** Show how the connection is. */
export function badge(name) {
  const place = byId("connection");
  place.textContent = word(name);
  place.className = `badge ${TONES[name]}`;
  place.dataset.state = name;
}

export const isConnected = () => byId("connection").dataset.state === "connected";

/** Say what the panel is doing; `sentence` is a function, so that it can be said in another language. */
export function say(kind, sentence) {
  told = sentence;
  byId("state").dataset.state = kind;
  byId("state").className = `state ${STATES[kind] ?? ""}`;
  repeat();
}

/** Say it again, after the language has changed or the panel was opened. */
export function repeat() {
  const text = told();
  byId("state").textContent = text;
  byId("notice").textContent = text;
  byId("notice").hidden = !text || byId("state").dataset.state !== "error" || !byId("panel").hidden;
}

/** Say something beside the form that it is about. */
export function whisper(place, text, tone) {
  place.textContent = text;
  place.className = `whisper ${tone}`;
}
