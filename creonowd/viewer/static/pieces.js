// The pieces of a prompt as an author knows them: a name, what became of it, and why, in words.

import { listing, number, reason, string } from "./language.js";

export const LAYERS = ["rules", "settings", "retrieved", "immediate"];
const sets = new WeakMap();

/** Return every piece of an inspection in the order of the prompt, those that are left out included. */
export function piecesOf(result) {
  if (!sets.has(result)) sets.set(result, LAYERS.flatMap((layer) => ofLayer(result, layer)));
  return sets.get(result);
}

/** Give every piece an address of its own; two of one source differ by their number. */
function ofLayer(result, layer) {
  const seen = new Map();
  const sizes = new Map();
  for (const one of result.trimEvidence) {
    if (one.layer !== layer) continue;
    if (!sizes.has(one.sourceRef)) sizes.set(one.sourceRef, []);
    sizes.get(one.sourceRef).push(one);
  }
  return result.layersDetail[layer].fragments.map((fragment) => {
    const nth = seen.get(fragment.sourceRef) ?? 0;
    seen.set(fragment.sourceRef, nth + 1);
    const size = sizes.get(fragment.sourceRef)?.[nth];
    return { ...fragment, layer, nth, size, address: `${layer}:${fragment.sourceRef}${nth ? `:${nth}` : ""}` };
  });
}

export const isIn = (piece) => piece.action !== "dropped";
export const isLeftOut = (piece) => piece.action !== "kept";

/** Return the first piece of a source, one that is in the prompt before one that is not. */
export function pieceOf(result, sourceRef) {
  const found = piecesOf(result).filter((one) => one.sourceRef === sourceRef);
  return found.find(isIn) ?? found[0];
}

/** Return what an author calls a piece. */
export function nameOf({ name, sourceRef, kind, content }) {
  if (kind === "constraint") return oneLine(content, 90) || sourceRef;
  if (name) return name;
  return sourceRef.replace(/^.*\//, "").replace(/\.(md|txt|json)(#.*)?$/, "");
}

/** Return a text as one line of at most so many characters. */
export function oneLine(text, length) {
  const line = text.slice(0, 8 * length).replace(/^---\n[^]*?\n---\n/, "").replace(/\s+/g, " ").trim();
  const head = Array.from(line.slice(0, 2 * length)).slice(0, length).join("");
  return head.length < line.length ? `${head}…` : head;
}

/** Say in a sentence why a piece is in, shortened or left out. */
export function whyOf(piece, result) {
  if (piece.rule === "score" && piece.action === "dropped") return leftOutPassage(piece, result);
  const said = piece.action === "kept" && piece.why ? spokenOf(piece.why) : "";
  return said || reason(piece.rule, piece.action);
}

function leftOutPassage(piece, result) {
  const closer = piecesOf(result).filter((one) => one.layer === "retrieved" && one.rule === "score" && isIn(one)).length;
  return string("closerPassages", closer);
}

/** Say what a passage shares with the text at the cursor. */
export function spokenOf({ names = [], terms = [], sentence = "" }) {
  if (sentence) return string("whySentence", sentence);
  const words = [...new Set([...names, ...terms.map((one) => one.term)])].slice(0, 4);
  return words.length ? string("whySpeaks", listing(words)) : "";
}

/** Say how much of a piece is in: its tokens, or what is left of what. */
export function sizeOf(piece) {
  if (piece.action === "trimmed" && piece.size) return string("tokensOf", piece.size.afterTokens, piece.size.beforeTokens);
  return string("tokens", piece.tokens);
}

/** Say how much more room would keep all of a piece. */
export const missingOf = (piece) => (piece.fitsWith === undefined ? "" : string("fitsWith", piece.fitsWith));

/** Return what *pin* means for a piece: its source, or nothing where a pin makes no sense. */
export function pinRefOf(piece) {
  const pinnable = ["passage", "person", "note", "document", "previous"].includes(piece.kind);
  return pinnable && piece.rule !== "future" && piece.rule !== "unreadable" ? piece.sourceRef : "";
}

/** Return the bytes of what an author can read of a piece's size in characters. */
export const charactersOf = ({ size }) => (size ? `${number(size.beforeChars)} → ${number(size.afterChars)}` : "");
