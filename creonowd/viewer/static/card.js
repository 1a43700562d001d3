// The card of a person, a note or a thread: what is written of it, and whether the model has it.

import { stateOf, subjectOf } from "./bookMap.js";
import { byId, button, fill, h, withBars } from "./dom.js";
import { eye } from "./eye.js";
import { inspection } from "./inspection.js";
import { string } from "./language.js";
import { pieceOf, whyOf } from "./pieces.js";
import { signal, when } from "./signals.js";

const WIDTH = 340;
let shown = null;
let opener = null;

/** Open the card of a source beside what was clicked. */
export function openCard({ sourceRef, from }) {
  opener = document.activeElement;
  shown = { sourceRef, from };
  show();
  byId("card").querySelector("button")?.focus({ preventScroll: true });
}

function show() {
  const box = byId("card");
  const { sourceRef, from } = shown;
  const subject = subjectOf(sourceRef);
  const result = inspection.shown?.result;
  const piece = result && pieceOf(result, sourceRef);
  const state = subject?.problem ? "problem" : stateOf(sourceRef);
  box.setAttribute("aria-label", subject?.name ?? sourceRef);
  fill(box,
    h("header", {}, h("h3", {}, h("i", { class: `mark ${state}`, "aria-hidden": "true" }), subject?.name ?? piece?.name ?? sourceRef), subject ? eye(subject) : null,
      button("×", close, { class: "close", "aria-label": string("close"), "data-key": "card:close" })),
    subject?.aliases?.length ? h("p", { class: "faint" }, string("alsoCalled", subject.aliases.join(" · "))) : null,
    h("p", { class: `card-state ${state}` }, subject?.problem ?? string(`card ${state}`), piece && state !== "seen" ? ` ${whyOf(piece, result)}` : ""),
    piece?.content ? h("div", { class: "piece-text", tabindex: "0", role: "group", "aria-label": subject?.name ?? sourceRef }, ...withBars(piece.content)) : null,
    h("p", { class: "piece-foot" }, h("code", { class: "path" }, sourceRef),
      button(string("askAbout"), () => {
        close();
        signal("ask", sourceRef);
      }, { class: "link", "data-key": "card:ask" }),
      piece ? button(string("showPiece"), () => {
        close();
        signal("piece", piece.address);
      }, { class: "link" }) : null));
  box.hidden = false;
  box.style.left = `${Math.max(8, Math.min(innerWidth - WIDTH - 8, from.left))}px`;
  const below = from.bottom + 6;
  box.style.top = `${Math.max(8, Math.min(innerHeight - box.offsetHeight - 8, below))}px`;
}

export function close() {
  if (byId("card").hidden) return false;
  const hadFocus = byId("card").contains(document.activeElement);
  byId("card").hidden = true;
  shown = null;
  if (hadFocus) opener?.focus({ preventScroll: true });
  return true;
}

export function listenToCard() {
  when("name", openCard);
  when(["subjects-loaded", "language"], () => shown && show());
  addEventListener("pointerdown", (event) => {
    if (shown && !byId("card").contains(event.target)) close();
  }, true);
}
