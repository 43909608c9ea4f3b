import { refuse } from "./refusal.ts";

/** A schema that is an object. */
export type SchemaObject = { readonly [keyword: string]: unknown };

const typeNames = ["object", "array", "string", "integer", "number", "boolean", "null"] as const;
export type TypeName = (typeof typeNames)[number];

/** Say nothing about the value. */
const annotations: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
  "$schema",
  "$comment",
  "$defs",
  "definitions",
]);

/** Keywords of one type each: where `type` is absent they say which types are meant. */
const typedKeywords: Readonly<Record<string, TypeName>> = {
  properties: "object",
  required: "object",
  additionalProperties: "object",
  minProperties: "object",
  maxProperties: "object",
  propertyNames: "object",
  items: "array",
  prefixItems: "array",
  minItems: "array",
  maxItems: "array",
  uniqueItems: "array",
  minLength: "string",
  maxLength: "string",
  pattern: "string",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "number",
};

const heldKeywords: ReadonlySet<string> = new Set([
  ...Object.keys(typedKeywords),
  "type",
  "nullable",
  "format",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "allOf",
  "$ref",
]);

const advice: ReadonlyMap<string, string> = new Map([
  ["not", "say what is allowed instead"],
  ...["if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"].map(
    (keyword) => [keyword, "use anyOf with one branch for each case"] as const,
  ),
  ["patternProperties", "use additionalProperties with propertyNames"],
  ["contains", "describe all items with items"],
  ["unevaluatedProperties", "use additionalProperties"],
  ["unevaluatedItems", "use items"],
  ["$dynamicRef", "use $ref to #/$defs/…"],
  ["$anchor", "use $ref to #/$defs/…"],
  ["additionalItems", "use prefixItems with items"],
]);

export function isAnnotation(keyword: string): boolean {
  return annotations.has(keyword) || keyword.startsWith("x-");
}

/** Refuses the first keyword that can't be held, so that none is ever left out in silence. */
export function vetKeywords(schema: SchemaObject, pointer: string): void {
  for (const keyword of Object.keys(schema)) {
    if (heldKeywords.has(keyword) || isAnnotation(keyword) || schema[keyword] === undefined) continue;
    // The root's own name changes nothing; further down it would change what $ref means.
    if (keyword === "$id" && pointer === "") continue;
    refuse(pointer, `${keyword} can't be held by this model's grammar; ${advice.get(keyword) ?? "remove it"}.`);
  }
}

/** Whether the schema says nothing about its value. */
export function isOpen(schema: unknown): boolean {
  if (schema === true || schema === undefined) return true;
  return isSchemaObject(schema) && Object.keys(schema).every((keyword) => isAnnotation(keyword));
}

export function isSchemaObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The types a schema allows, from `type`, `nullable` or else from its other keywords. Undefined: every type. */
export function typesOf(schema: SchemaObject, pointer: string): readonly TypeName[] | undefined {
  const named = namedTypes(schema["type"], pointer);
  if (named !== undefined) return schema["nullable"] === true ? [...new Set([...named, "null" as const])] : named;
  const implied = new Set(
    Object.keys(schema).flatMap((keyword) => {
      if (keyword === "format") return typeof schema["format"] === "string" ? (["string"] as const) : [];
      const type = typedKeywords[keyword];
      return type === undefined ? [] : [type];
    }),
  );
  return implied.size === 0 ? undefined : typeNames.filter((name) => implied.has(name));
}

function namedTypes(type: unknown, pointer: string): readonly TypeName[] | undefined {
  if (type === undefined) return undefined;
  const names: readonly unknown[] = Array.isArray(type) ? type : [type];
  const known = typeNames.filter((name) => names.includes(name));
  const hasUnknown = names.some((name) => !typeNames.some((each) => each === name));
  if (hasUnknown || known.length === 0)
    refuse(pointer, `type ${JSON.stringify(type)} is no type; use ${typeNames.join(", ")}.`);
  return known;
}

/** A keyword that has to be a whole number, 0 or more. */
export function countOf(schema: SchemaObject, keyword: string, pointer: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    refuse(pointer, `${keyword} has to be a whole number, 0 or more.`);
  }
  return value;
}

/** A keyword that has to be a number. */
export function numberOf(schema: SchemaObject, keyword: string, pointer: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value)) refuse(pointer, `${keyword} has to be a number.`);
  return value;
}

/** One step of a JSON pointer. */
export function step(pointer: string, ...keys: readonly (string | number)[]): string {
  return pointer + keys.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
