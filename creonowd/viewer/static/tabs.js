// The four tabs of the panel. What changed elsewhere waits while something is being read there.

import { byId, h, patch } from "./dom.js";
import { inspection, refresh } from "./inspection.js";
import { string } from "./language.js";
import { leftOut, reveal, showLeftOut, showSees } from "./pieceList.js";
import { isIn, piecesOf } from "./pieces.js";
import { note, place } from "./place.js";
import { showPrompt } from "./promptView.js";
import { onSignal, signal } from "./signals.js";
import { difference, showSince, sinceLastTime } from "./changes.js";

const TABS = ["sees", "left-out", "prompt", "since"];
const SHOW = { sees: showSees, "left-out": showLeftOut, prompt: showPrompt, since: showSince };
let listed = null;
let topOfTab = null;

/** Show a tab, and remember it in the address. */
export function openTab(name) {
  if (!TABS.includes(name)) return;
  note({ tab: name });
  for (const one of TABS) byId(one).hidden = one !== name;
  showTabs();
  if (name === "prompt" && inspection.shown && !inspection.shown.result.prompt) refresh();
  showContents();
}

function showTabs() {
  const result = inspection.shown?.result;
  const counts = { "left-out": result ? leftOut(result).length : 0, since: result ? sinceLastTime().length : 0 };
  const label = (name) => (counts[name] ? string(`tab ${name} count`, counts[name]) : string(`tab ${name}`));
  patch(byId("tabs"), TABS, { key: (name) => name, sign: (name) => JSON.stringify([label(name), name === place.tab]), render: (name) => tab(name, label(name)) });
}

function tab(name, label) {
  const isOpen = name === place.tab;
  return h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(isOpen), "aria-controls": name, tabindex: isOpen ? "0" : "-1",
    onclick: () => openTab(name), onkeydown: (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = TABS[(TABS.indexOf(name) + by + TABS.length) % TABS.length];
      openTab(next);
      byId(`tab-${next}`).focus();
    } }, label);
}

function showContents() {
  if (!inspection.shown) return;
  listed = inspection.shown;
  byId("changes").hidden = true;
  SHOW[place.tab]();
}

/** Whether the author is reading in the open tab: scrolled, selected or focused something there. */
function isBeingRead() {
  const box = byId(place.tab);
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && box.contains(selection.anchorNode);
  const isScrolled = [box, byId("panel")].some((one) => one.scrollTop > 0); // on a phone the panel scrolls
  return isScrolled || isSelected || (box !== document.activeElement && box.contains(document.activeElement));
}

/** Show a new prompt; one that a change elsewhere made waits for the author, if there is something to wait for. */
function onInspected(cause) {
  showTabs();
  if (cause !== "elsewhere" || !listed || !isBeingRead()) return showContents();
  const count = changesBetween(listed.result, inspection.shown.result);
  if (!count) return showContents();
  byId("changes").textContent = string("thingsChanged", count);
  byId("changes").hidden = false;
  return undefined;
}

function changesBetween(before, after) {
  const out = new Set(piecesOf(before).filter((one) => !isIn(one)).map((one) => one.address));
  const moved = piecesOf(after).filter((one) => !isIn(one) && !out.has(one.address)).length;
  return Math.max(difference(before, after).length, moved);
}

/** What is read in a tab stays where it is on the screen while the parts above it grow or shrink. */
function holdStill() {
  const box = byId(place.tab);
  const { top } = box.getBoundingClientRect();
  if (topOfTab !== null && isBeingRead()) box.scrollTop += top - topOfTab;
  topOfTab = box.offsetParent ? top : null;
}

/** Go to a piece by its address. */
export function showPiece(address) {
  const piece = inspection.shown && piecesOf(inspection.shown.result).find((one) => one.address === address);
  if (!piece) return;
  signal("pane", "sees");
  openTab(isIn(piece) ? "sees" : "left-out");
  note({ piece: address });
  reveal(address, place.tab);
}

/** Go to a layer of what the model sees. */
function showLayer(layer) {
  signal("pane", "sees");
  openTab("sees");
  const title = byId(`layer-${layer}`);
  title?.scrollIntoView({ block: "start" });
  title?.focus({ preventScroll: true });
}

export function listenToTabs() {
  byId("changes").addEventListener("click", () => {
    showContents();
    byId(place.tab).focus({ preventScroll: true });
  });
  const growing = new ResizeObserver(holdStill);
  for (const one of ["bar", "headline", "asides", "ask", "state", "panel"]) growing.observe(byId(one));
  for (const one of TABS) byId(one).addEventListener("scroll", () => signal("scrolled"), { passive: true });
  onSignal("inspected", onInspected);
  onSignal("piece", showPiece);
  onSignal("layer", showLayer);
  onSignal("tab", openTab);
  onSignal("language", () => {
    for (const one of TABS) byId(one).replaceChildren();
    openTab(place.tab);
  });
}
