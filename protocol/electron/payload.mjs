// A payload as JSON text, or a clear refusal. Knows what JavaScript can hold and JSON cannot.
import { DaemonError } from "./errors.mjs";

const PLAIN = new Set(["[object Object]", "[object Array]"]);

/**
 * Write a payload as JSON.
 *
 * `JSON.stringify` turns a Map into `{}` and NaN into `null` without a word; here both are refused.
 * Members that are `undefined` are left out, as everywhere in JavaScript.
 */
export function encodePayload(payload, meta = {}) {
  const named = payload ?? {};
  if (typeof named !== "object" || tag(named) !== "[object Object]") {
    throw misfit("The payload must be an object with named fields.");
  }
  const silent = Object.keys(meta).length === 0;
  return stringify(silent ? named : { ...named, _meta: { ...named._meta, ...meta } });
}

/** Write any value as JSON; DaemonError INVALID_ARGUMENT if it holds what JSON cannot. */
export function stringify(value) {
  try {
    return JSON.stringify(value, refuse) ?? "null";
  } catch (error) {
    throw error instanceof DaemonError ? error : misfit("The payload cannot be written as JSON.");
  }
}

function refuse(key, value) {
  const held = this[key];
  const kind = typeof held;
  const foreign = kind === "object" && held !== null && !PLAIN.has(tag(held));
  const unfit = kind === "function" || kind === "symbol" || kind === "bigint" || foreign;
  if (unfit || (kind === "number" && !Number.isFinite(held))) {
    const what = foreign ? tag(held).slice(8, -1) : kind === "number" ? String(held) : kind;
    throw misfit(`JSON cannot hold a ${what}; send plain objects, lists, texts and numbers.`, key);
  }
  return value;
}

function tag(value) {
  return Object.prototype.toString.call(value);
}

function misfit(message, field) {
  return new DaemonError("INVALID_ARGUMENT", message, field ? { field } : undefined);
}
