import { isAnnotation, isSchemaObject, type SchemaObject, typesOf } from "./keywords.ts";
import { refuse } from "./refusal.ts";

const lowerBounds: readonly string[] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const upperBounds: readonly string[] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/** One schema that allows what both allow. @throws SchemaRefusal where that can't be written as one schema */
export function mergeSchemas(first: SchemaObject, second: SchemaObject, pointer: string): SchemaObject {
  const merged: Record<string, unknown> = { ...first };
  for (const [keyword, value] of Object.entries(second)) {
    if (isAnnotation(keyword)) continue;
    const known = first[keyword];
    merged[keyword] = known === undefined ? value : both(keyword, known, value, pointer);
  }
  if (first["additionalProperties"] !== undefined || second["additionalProperties"] !== undefined) {
    Object.assign(merged, additional(first, second, pointer));
  }
  const type = commonTypes(first, second, pointer);
  if (type !== undefined) merged["type"] = type;
  delete merged["nullable"];
  return merged;
}

function both(keyword: string, first: unknown, second: unknown, pointer: string): unknown {
  if (same(first, second)) return first;
  if (typeof first === "number" && typeof second === "number") {
    if (lowerBounds.includes(keyword)) return Math.max(first, second);
    if (upperBounds.includes(keyword)) return Math.min(first, second);
  }
  switch (keyword) {
    case "type":
    case "nullable":
    case "additionalProperties":
      // Looked at as a whole in mergeSchemas.
      return first;
    case "properties":
      return mergedProperties(first, second, pointer);
    case "required":
      return [...new Set([...list(first, keyword, pointer), ...list(second, keyword, pointer)])];
    case "items":
    case "propertyNames":
      return { allOf: [first, second] };
    case "enum": {
      const values = list(second, keyword, pointer);
      return list(first, keyword, pointer).filter((value) => values.some((each) => same(each, value)));
    }
    default:
      return refuse(
        pointer,
        `${keyword} is set twice for the same value (allOf, $ref or anyOf beside it); set it once.`,
      );
  }
}

function commonTypes(first: SchemaObject, second: SchemaObject, pointer: string): readonly string[] | undefined {
  if (first["type"] === undefined || second["type"] === undefined) {
    const only = first["type"] === undefined ? second : first;
    return only["type"] === undefined ? undefined : typesOf(only, pointer);
  }
  const [left, right] = [typesOf(first, pointer) ?? [], typesOf(second, pointer) ?? []];
  const types = left.filter((type) => right.includes(type));
  const meetsNumber = (some: readonly string[], others: readonly string[]): boolean =>
    some.includes("integer") && others.includes("number");
  if (!types.includes("number") && (meetsNumber(left, right) || meetsNumber(right, left))) types.push("integer");
  if (types.length === 0) refuse(pointer, "no type is allowed by all of its parts, so nothing fits.");
  return [...new Set(types)];
}

function mergedProperties(first: unknown, second: unknown, pointer: string): unknown {
  if (!isSchemaObject(first) || !isSchemaObject(second)) refuse(pointer, "properties has to be an object.");
  const names = new Set([...Object.keys(first), ...Object.keys(second)]);
  return Object.fromEntries(
    [...names].map((name) => {
      const schemas = [first, second].filter((each) => Object.hasOwn(each, name)).map((each) => each[name]);
      return [name, schemas.length === 1 ? schemas[0] : { allOf: schemas }];
    }),
  );
}

/** `additionalProperties` speaks of the names beside its own `properties`: only what both parts name is kept. */
function additional(first: SchemaObject, second: SchemaObject, pointer: string): Record<string, unknown> {
  const [left, right] = [first["additionalProperties"], second["additionalProperties"]];
  for (const [closed, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const value = closed["additionalProperties"];
    if (value === undefined || value === true) continue;
    const own = isSchemaObject(closed["properties"]) ? closed["properties"] : {};
    const others = isSchemaObject(other["properties"]) ? other["properties"] : {};
    const stranger = Object.keys(others).find((name) => !Object.hasOwn(own, name));
    if (stranger !== undefined) {
      refuse(
        pointer,
        `additionalProperties forbids "${stranger}", which another part of allOf names; write one object.`,
      );
    }
  }
  if (left === undefined || left === true) return { additionalProperties: right ?? left };
  if (right === undefined || right === true) return { additionalProperties: left };
  if (left === false || right === false) return { additionalProperties: false };
  return { additionalProperties: { allOf: [left, right] } };
}

function list(value: unknown, keyword: string, pointer: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(pointer, `${keyword} has to be a list.`);
}

function same(first: unknown, second: unknown): boolean {
  return JSON.stringify(first) === JSON.stringify(second);
}
