// The drawer: budget, rules, the AI, usage, figures for developers, export.

import { byId, button, fill, h } from "./dom.js";
import { string } from "./language.js";
import { when } from "./signals.js";

let opener = null;

/** Build the drawer of its parts; each is a box that can be opened by itself. */
export function makeDrawer(boxes) {
  const made = boxes.map(({ id, title, show }) => {
    const content = h("div", { class: "box-content" });
    const box = h("details", { class: "box", id, ontoggle: () => box.open && show(content) }, h("summary", {}, h("h3", { "data-string": title }, string(title))), content);
    when(["language", "inspected", "budget", "drawer-contents"], () => box.open && show(content));
    return box;
  });
  fill(byId("drawer"), h("header", {}, h("h2", { id: "drawer-title", "data-string": "drawer" }, string("drawer")),
    button("×", closeDrawer, { class: "close", id: "drawer-close", "data-label": "close", "aria-label": string("close") })), ...made);
}

/** Open the drawer, at one of its boxes if that is named. */
export function openDrawer(id) {
  opener = document.activeElement;
  byId("drawer").hidden = false;
  byId("drawer-toggle").setAttribute("aria-expanded", "true");
  const box = id && byId(id);
  if (box) {
    box.open = true;
    box.scrollIntoView({ block: "start" });
  }
  (box ? box.querySelector("summary") : byId("drawer-close")).focus();
}

export function closeDrawer() {
  if (byId("drawer").hidden) return false;
  byId("drawer").hidden = true;
  byId("drawer-toggle").setAttribute("aria-expanded", "false");
  (opener && document.contains(opener) ? opener : byId("drawer-toggle")).focus({ preventScroll: true });
  return true;
}

export function listenToDrawer() {
  byId("drawer-toggle").addEventListener("click", () => (byId("drawer").hidden ? openDrawer() : closeDrawer()));
  when("drawer", openDrawer);
}
