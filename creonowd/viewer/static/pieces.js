// The pieces of a prompt as an author knows them: a name, what became of it, and why, in words.

import { listing, number, reason, string } from "./language.js";

/** Files that have a meaning of their own, by what an author calls them. */
const FILES = /^\.creonow\/(?:rules\/(style|terminology)|settings\/(memory|outline)|(memory))\.(?:md|txt|json)$/;
/** Pieces that are no file, by how their sources are named. */
const OWN_NAMES = { selection: /^selection$/, input: /^additionalInput$/, task: /^skill:/, synopsis: /^synopsis$/, run: /^runs\//, relations: /^relations$/ };
export const LAYERS = ["rules", "settings", "retrieved", "immediate"];
const sets = new WeakMap();

/** Return every piece of an inspection in the order of the prompt, those that are left out included. */
export const piecesOf = (result) => setOf(result).pieces;

/** Return the pieces of one source; those of a file are all that were made of it. */
export const piecesFrom = (result, sourceRef) => setOf(result).bySource.get(sourceRef) ?? setOf(result).byFile.get(sourceRef) ?? [];

/** An inspection is asked for its pieces by every part of the page, so they are made once. */
function setOf(result) {
  if (!sets.has(result)) {
    const pieces = LAYERS.flatMap((layer) => ofLayer(result, layer));
    const closer = pieces.filter((one) => one.layer === "retrieved" && one.rule === "score" && isIn(one)).length;
    const parts = pieces.filter((one) => one.sourceRef.startsWith(".creonow/") && one.sourceRef.includes("#"));
    const byFile = Map.groupBy(parts, (one) => one.sourceRef.replace(/#.*$/, ""));
    sets.set(result, { pieces, bySource: Map.groupBy(pieces, (one) => one.sourceRef), byFile, closer });
  }
  return sets.get(result);
}

/** Give every piece an address of its own; two of one source differ by their number. */
function ofLayer(result, layer) {
  const seen = new Map();
  const sizes = new Map();
  for (const one of result.trimEvidence) {
    if (one.layer !== layer || one.action !== "trimmed") continue;
    if (!sizes.has(one.sourceRef)) sizes.set(one.sourceRef, []);
    sizes.get(one.sourceRef).push(one);
  }
  return result.layersDetail[layer].fragments.map((fragment) => {
    const nth = seen.get(fragment.sourceRef) ?? 0;
    seen.set(fragment.sourceRef, nth + 1);
    const size = fragment.action === "trimmed" ? sizes.get(fragment.sourceRef)?.shift() : undefined;
    return { ...fragment, layer, nth, size, address: `${layer}:${fragment.sourceRef}${nth ? `:${nth}` : ""}` };
  });
}

export const isIn = (piece) => piece.action !== "dropped";
export const isLeftOut = (piece) => piece.action !== "kept";

/** Return the first piece of a source, one that is in the prompt before one that is not. */
export function pieceOf(result, sourceRef) {
  const found = piecesFrom(result, sourceRef);
  return found.find(isIn) ?? found[0];
}

/** Return what an author calls a piece. */
export function nameOf({ name, sourceRef, kind, content }) {
  if (kind === "constraint") return oneLine(content, 90) || sourceRef;
  const own = kind in OWN_NAMES ? kind : Object.keys(OWN_NAMES).find((one) => OWN_NAMES[one].test(sourceRef));
  if (own) return string(`piece ${own}`);
  const known = FILES.exec(sourceRef.replace(/#.*$/, ""))?.slice(1).find(Boolean);
  if (known && (!name || name === known)) return string(`file ${known}`);
  if (name) return name;
  return sourceRef.replace(/^.*\//, "").replace(/\.(md|txt|json)(#.*)?$/, "");
}

/** Return a text as one line of at most `length` characters. */
export function oneLine(text, length) {
  const line = text.slice(0, 8 * length).replace(/^---\n[^]*?\n---\n/, "").replace(/\s+/g, " ").trim();
  const head = Array.from(line.slice(0, 2 * length)).slice(0, length).join("");
  return head.length < line.length ? `${head}…` : head;
}

/** Return where a piece stands, as an author would name the file; ids of rules are for programs. */
export const fileOf = ({ sourceRef }) => sourceRef.replace(/#con_.*$/, "");

/** Return as a sentence why a piece is in the prompt, shortened or left out. */
export function whyOf(piece, result) {
  if (piece.rule === "score" && piece.action === "dropped") return string("closerPassages", setOf(result).closer);
  const shared = piece.action === "kept" && piece.why ? sharedWordsOf(piece.why) : "";
  return shared || reason(piece.rule, piece.action);
}

/** Return as a sentence which words a passage shares with the text at the cursor. */
export function sharedWordsOf({ names = [], terms = [], sentence = "" }) {
  if (sentence) return string("whySentence", sentence);
  const plain = names.map((one) => one.toLowerCase());
  const words = [...new Set([...names, ...terms.map((one) => one.term).filter((one) => !plain.includes(one.toLowerCase()))])].slice(0, 4);
  return words.length ? string("whySpeaks", listing(words)) : "";
}

/** Return how much of a piece is in the prompt: its tokens, or the tokens left after it was shortened and those before. */
export function sizeOf(piece) {
  if (piece.action === "trimmed" && piece.size) return string("tokensOf", piece.size.afterTokens, piece.size.beforeTokens);
  return string("tokens", piece.tokens);
}

/** Return how much more room would keep all of a piece. */
export const missingOf = (piece) => (piece.fitsWith === undefined ? "" : string("fitsWith", piece.fitsWith));

/** Return what *pin* means for a piece: its source, or nothing where a pin makes no sense. */
export function pinRefOf(piece) {
  const pinnable = ["passage", "person", "note", "thread", "document", "previous"].includes(piece.kind);
  return pinnable && piece.rule !== "future" && piece.rule !== "unreadable" ? piece.sourceRef : "";
}

/** Return a piece's size in characters before and after it was shortened. */
export const charactersOf = ({ size }) => (size ? `${number(size.beforeChars)} → ${number(size.afterChars)}` : "");
