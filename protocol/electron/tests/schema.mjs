// Check a value against a schema of openrpc.json; covers the forms that the contract uses.
import { readFileSync } from "node:fs";

export const contract = JSON.parse(readFileSync(new URL("../../openrpc.json", import.meta.url), "utf8"));

const PLACE = "#/components/schemas/";
const PRIMITIVES = {
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

/** List the places where a value does not match the schema; empty if it matches. */
export function misfits(value, schema, path = "data") {
  if (schema.$ref) return misfits(value, contract.components.schemas[schema.$ref.slice(PLACE.length)], path);
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${path} is not one of ${schema.enum}`];
  if (schema.anyOf) return anyOf(value, schema.anyOf, path);
  if (schema.allOf) return schema.allOf.flatMap((each) => misfits(value, each, path));
  if (schema.type === "array") return array(value, schema, path);
  if (schema.type === "object") return object(value, schema, path);
  const fits = PRIMITIVES[schema.type] ?? (() => true);
  return fits(value) ? [] : [`${path} is not of type ${schema.type}`];
}

function anyOf(value, alternatives, path) {
  const fits = alternatives.some((each) => misfits(value, each, path).length === 0);
  return fits ? [] : [`${path} fits no alternative`];
}

function array(value, { items = {}, prefixItems }, path) {
  if (!Array.isArray(value)) return [`${path} is no list`];
  return value.flatMap((each, i) => misfits(each, prefixItems?.[i] ?? items, `${path}[${i}]`));
}

function object(value, { properties = {}, required = [], additionalProperties = {} }, path) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [`${path} is no object`];
  const missing = required.filter((key) => !(key in value)).map((key) => `${path}.${key} is missing`);
  const wrong = Object.entries(value).flatMap(([key, held]) =>
    misfits(held, properties[key] ?? additionalProperties, `${path}.${key}`),
  );
  return [...missing, ...wrong];
}
