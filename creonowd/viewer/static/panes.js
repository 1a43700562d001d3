// Which parts of the desk are seen: the panel can be closed; on a phone there is one pane at a time.

import { byId } from "./dom.js";
import { string } from "./language.js";
import { note } from "./place.js";
import { onSignal, signal } from "./signals.js";

const PANES = ["text", "sees", "ask"];

/** Show one pane of a phone, and remember it in the address. */
export function showPane(name) {
  note({ pane: name });
  showOnly(name);
}

function showOnly(name) {
  document.body.dataset.pane = name;
  for (const one of PANES) {
    byId(`pane-${one}`).setAttribute("aria-selected", String(one === name));
    byId(`pane-${one}`).tabIndex = one === name ? 0 : -1;
  }
  if (name !== "text") setPanel(true);
}

/** Open or close the panel. */
export function setPanel(isOpen) {
  byId("panel").hidden = !isOpen;
  document.body.classList.toggle("panel-closed", !isOpen);
  byId("toggle").setAttribute("aria-expanded", String(isOpen));
  byId("toggle").textContent = string(isOpen ? "hidePanel" : "showPanel");
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  showTheme();
}

const theme = () => document.documentElement.dataset.theme;

function showTheme() {
  byId("theme").textContent = string(theme() === "dark" ? "toLight" : "toDark");
}

export function listenToPanes() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  byId("toggle").addEventListener("click", () => {
    setPanel(byId("panel").hidden);
    signal("place", {});
  });
  for (const one of PANES) {
    byId(`pane-${one}`).addEventListener("click", () => showPane(one));
    byId(`pane-${one}`).addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = PANES[(PANES.indexOf(one) + by + PANES.length) % PANES.length];
      showPane(next);
      byId(`pane-${next}`).focus();
    });
  }
  onSignal("pane", (name) => PANES.includes(name) && matchMedia("(max-width: 720px)").matches && showPane(name));
  onSignal("language", () => {
    showTheme();
    setPanel(!byId("panel").hidden);
  });
  showOnly("text");
}
