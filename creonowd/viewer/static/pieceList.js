// The lists of pieces: what the model sees, layer by layer, and what is left out, with the reason and what would change it.

import { subjectOf } from "./bookMap.js";
import { previewOf, profileTotal, raiseBudget, withoutPin, withPin, withSkill, withTotal } from "./budget.js";
import { byId, byKey, button, copyButton, fill, h, patch, withBars, withMarks } from "./dom.js";
import { injectToggle } from "./card.js";
import { inspection } from "./inspection.js";
import { locale, string } from "./language.js";
import { charactersOf, fileOf, isIn, isLeftOut, LAYERS, missingOf, nameOf, oneLine, piecesOf, pinRefOf, sizeOf, whyOf } from "./pieces.js";
import { address, GENERAL, go, note, pin, place } from "./place.js";
import { signal } from "./signals.js";
import { toast } from "./undo.js";

const SHOWN = 40;
const open = new Set();
const expandedGroups = new Set();
const query = { sees: "", "left-out": "" };

/** Show the pieces that are in the prompt, by layer. */
export function showSees() {
  const { result } = inspection.shown;
  const box = byId("sees");
  if (!box.firstElementChild) box.append(finder("sees", showSees), h("div", { class: "layers" }));
  patch(box.lastElementChild, LAYERS, { key: (layer) => layer, sign: () => locale(), render: layerSection });
  for (const layer of LAYERS) showLayer(layer, result);
}

function layerSection(layer) {
  return h("section", { class: "layer", "data-layer": layer, "data-testid": `ai-context-layer-${layer}`, "aria-labelledby": `layer-${layer}` },
    h("h3", { id: `layer-${layer}`, tabindex: "-1" }, h("i", { class: `key ${layer}` }), string(layer), " ", h("span", { class: "number" })),
    h("div", { class: "pieces" }), h("div", { class: "more" }));
}

function showLayer(layer, result) {
  const section = byId("sees").querySelector(`[data-layer="${layer}"]`);
  const inside = piecesOf(result).filter((one) => one.layer === layer && isIn(one));
  section.querySelector("h3 .number").textContent = string("tokens", result.layersDetail[layer].tokens);
  listPieces(section.querySelector(".pieces"), section.querySelector(".more"), inside, "sees", layer, result, showSees);
  const empty = !inside.length ? h("p", { class: "faint" }, string(`empty ${layer}`), " ", emptyAction(layer)) : null;
  if (empty) fill(section.querySelector(".more"), empty);
}

/** An empty layer offers what would fill it. */
function emptyAction(layer) {
  if (layer === "rules") return button(string("addRule"), () => signal("drawer", "rules-box"), { class: "link" });
  if (layer === "settings") return button(string("writeOne"), () => signal("write-down", { kind: "note", name: "" }), { class: "link" });
  return null;
}

/** Show the pieces that are left out or shortened, those that an author would miss first. */
export function showLeftOut() {
  const { result } = inspection.shown;
  const box = byId("left-out");
  if (!box.firstElementChild) box.append(finder("left-out", showLeftOut), h("div", { class: "pieces" }), h("div", { class: "more" }));
  listPieces(box.children[1], box.children[2], leftOut(result), "left-out", "left-out", result, showLeftOut);
  if (!leftOut(result).length) fill(box.children[2], h("p", { class: "faint" }, string("nothingLeftOut")));
}

const RANK = { immediate: 0, rules: 1, settings: 2, retrieved: 3 };

export function leftOut(result) {
  const found = piecesOf(result).filter(isLeftOut);
  const weight = (one) => RANK[one.layer] * 10 - (one.score ?? 0) + (one.rule === "future" ? 5 : 0);
  return found.sort((one, two) => weight(one) - weight(two));
}

function finder(name, show) {
  const field = h("input", { type: "search", class: "find", "data-find": name, "aria-label": string("find"), placeholder: string("find"), oninput: () => {
    query[name] = field.value.trim();
    show();
  } });
  return h("div", { class: "finder" }, field, h("kbd", { "aria-hidden": "true" }, "/"), h("output", { class: "found" }));
}

function listPieces(list, more, pieces, tab, group, result, show) {
  const searchText = query[tab].toLowerCase();
  const found = searchText ? pieces.filter((one) => `${nameOf(one)}\n${one.sourceRef}\n${one.content}`.toLowerCase().includes(searchText)) : pieces;
  const limit = expandedGroups.has(group) ? found.length : SHOWN;
  const sign = (one) => JSON.stringify([one.content, one.action, one.tokens, one.rule, one.why, one.fitsWith, one.size, searchText, place.pinned.includes(one.sourceRef),
    subjectOf(one.sourceRef), locale(), whyOf(one, result)]);
  patch(list, found.slice(0, limit), { key: (one) => one.address, sign, render: (one) => box(one, tab, searchText, result) });
  const rest = found.length - limit;
  fill(more, rest > 0 ? button(string("showAll", found.length), () => {
    expandedGroups.add(group);
    show();
  }, { class: "link" }) : null, searchText && !found.length ? h("p", { class: "faint" }, string("noMatch")) : null);
}

function box(piece, tab, searchText, result) {
  const { action, address: key, sourceRef } = piece;
  const subject = subjectOf(sourceRef);
  const isPinned = place.pinned.includes(sourceRef);
  const details = h("details", { open: open.has(key) || place.piece === key || Boolean(searchText && tab === "sees"), ontoggle: () => {
    if (details.open) open.add(key);
    else open.delete(key);
    if (details.open && !details.querySelector(".piece-body")) details.append(body(piece, searchText));
    if (details.open && details.contains(document.activeElement)) note({ piece: key });
  } },
  h("summary", { "data-key": `summary:${key}` },
    h("span", { class: "piece-head" }, h("span", { class: "piece-name" }, ...withMarks(nameOf(piece), searchText)),
      isPinned ? h("span", { class: "badge" }, string("pinned")) : null,
      action === "trimmed" ? h("span", { class: "badge trimmed" }, string(action)) : null,
      h("span", { class: "number" }, sizeOf(piece))),
    h("span", { class: "piece-why" }, whyOf(piece, result), missingOf(piece) ? ` · ${missingOf(piece)}` : ""),
    previewText(piece)));
  if (details.open) details.append(body(piece, searchText));
  const doing = [subject ? injectToggle(subject) : null, ...actions(piece, tab, isPinned)].filter(Boolean);
  const isShort = doing.length <= 2 && (tab !== "left-out" || (piece.fitsWith === undefined && piece.rule !== "skill_window"));
  return h("article", { class: `piece ${action} ${piece.layer} ${isShort ? "beside" : "below"}` }, details, doing.length ? h("div", { class: "piece-actions" }, ...doing) : null);
}

/** Show how the text of a piece begins below its heading; data begins with nothing that an author would read. */
function previewText(piece) {
  if (piece.kind === "constraint") return null; // a rule is its own name
  const begins = oneLine(piece.content.replace(/^#+ .*\n*/, "").replace(/^[-*] /gm, ""), 110);
  const isRead = begins && nameOf(piece) !== begins && !/^[[{]/.test(begins);
  return isRead ? h("span", { class: "piece-preview" }, begins) : null;
}

/** What can be done about a piece that is left out, or pinned. */
function actions(piece, tab, isPinned) {
  const made = [];
  const ref = pinRefOf(piece);
  if (isPinned) made.push(button(string("unpin"), () => setPin(piece, false), { class: "small", "data-key": `pin:${piece.address}`, ...previewOf(withoutPin(piece.sourceRef)) }));
  else if (ref && tab === "left-out" && piece.layer !== "immediate") {
    made.push(button(string("pin"), () => setPin(piece, true), { class: "small", "data-key": `pin:${piece.address}`, ...previewOf(withPin(ref)) }));
  }
  if (tab !== "left-out") return made;
  if (piece.fitsWith !== undefined) {
    const total = profileTotal() + piece.fitsWith;
    made.push(button(string("makeRoom"), () => raiseBudget(total), { class: "small", title: string("raiseTo", total), "data-key": `room:${piece.address}`, ...previewOf(withTotal(total)) }));
  }
  if (piece.rule === "skill_window") made.push(button(string("readWhole"), readWhole, { class: "small", "data-key": `whole:${piece.address}`, ...previewOf(withSkill(null)) }));
  return made;
}

/** Pin a piece or take its pin away, which can be undone. */
export function setPin(piece, isPinned) {
  pin(piece.sourceRef, isPinned);
  toast(string(isPinned ? "pinnedNow" : "unpinnedNow", nameOf(piece)), () => pin(piece.sourceRef, !isPinned));
}

/** Use the general skill, which reads as much of the chapter as fits. */
export const readWhole = () => useSkill(GENERAL, string("readsWhole"));

/** Use another skill, say so, and offer to undo that. */
export function useSkill(skillId, message) {
  const before = place.skillId;
  const use = (id) => {
    go({ skillId: id });
    signal("skills");
  };
  use(skillId);
  toast(message, () => use(before));
}

function body(piece, searchText) {
  const { content, sourceRef, document } = piece;
  const text = searchText ? withMarks(content, searchText) : withBars(content);
  const isNamed = nameOf(piece) === content.trim(); // a rule is its own name
  return h("div", { class: "piece-body" },
    content && !isNamed ? h("div", { class: "piece-text", tabindex: "0", role: "group", "aria-label": nameOf(piece) }, ...text) : h("div", { class: "piece-text" }),
    h("p", { class: "piece-foot" }, h("code", { class: "path" }, fileOf(piece)), piece.action === "trimmed" ? h("span", { class: "faint" }, string("characters", charactersOf(piece))) : null,
      content ? copyButton(string("copy"), () => content, { class: "link", done: string("copied"), failed: string("copyFailed") }) : null,
      document ? button(string("showInText"), () => signal("open", { documentId: document.documentId, cursor: document.to, anchor: document.from }), { class: "link" }) : null,
      button(string("askAbout"), () => signal("ask", sourceRef), { class: "link" }),
      h("a", { class: "link", href: address({ piece: piece.address, tab: isIn(piece) ? "sees" : "left-out", about: "", pane: "" }) }, string("address"))));
}

/** Open a piece, bring it into view and give it the focus. */
export function reveal(key, tab) {
  open.add(key);
  const list = byId(tab);
  let found = byKey(key, list);
  if (!found) {
    LAYERS.forEach((layer) => expandedGroups.add(layer));
    expandedGroups.add("left-out");
    if (tab === "sees") showSees();
    else showLeftOut();
    found = byKey(key, list);
  }
  if (!found) return;
  found.querySelector("details").open = true;
  found.querySelector("summary").focus({ preventScroll: true });
  found.scrollIntoView({ block: "center" });
}

/** Walk to the next or the previous piece of a list. */
export function walk(tab, by) {
  const all = [...byId(tab).querySelectorAll("summary")];
  const at = all.indexOf(document.activeElement);
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
