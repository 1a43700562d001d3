// A payload as JSON text, or an error that says what JSON cannot hold.
import { DaemonError } from "./errors.mjs";

const PLAIN = new Set(["[object Object]", "[object Array]"]);

/**
 * Write a payload as JSON.
 *
 * `JSON.stringify` turns a Map into `{}` and NaN into `null` silently; here both are refused.
 * Members that are `undefined` are left out, as everywhere in JavaScript.
 */
export function encodePayload(payload, meta = {}) {
  const fields = payload ?? {};
  if (typeof fields !== "object" || tag(fields) !== "[object Object]") {
    throw invalidPayload("The payload must be an object with named fields.");
  }
  if (Object.keys(meta).length === 0) return stringify(fields);
  return stringify({ ...fields, _meta: { ...fields._meta, ...meta } });
}

/** Write any value as JSON; DaemonError INVALID_ARGUMENT if it holds what JSON cannot. */
export function stringify(value) {
  try {
    return JSON.stringify(value, checkValue) ?? "null";
  } catch (error) {
    throw error instanceof DaemonError ? error : invalidPayload("The payload cannot be written as JSON.");
  }
}

function checkValue(key, value) {
  const original = this[key]; // `value` is what `toJSON` has already made of it
  const unfit = unfitKind(original);
  if (unfit !== undefined) {
    throw invalidPayload(`JSON cannot hold a ${unfit}; send plain objects, lists, texts and numbers.`, key);
  }
  return value;
}

/** Name what JSON cannot hold; undefined for what it can. */
function unfitKind(value) {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : String(value);
  if (["function", "symbol", "bigint"].includes(typeof value)) return typeof value;
  if (typeof value !== "object" || value === null || PLAIN.has(tag(value))) return undefined;
  return tag(value).slice("[object ".length, -1);
}

function tag(value) {
  return Object.prototype.toString.call(value);
}

function invalidPayload(message, field) {
  return new DaemonError("INVALID_ARGUMENT", message, field ? { field } : undefined);
}
