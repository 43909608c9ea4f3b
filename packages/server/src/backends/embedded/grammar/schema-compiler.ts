import { anyBoolean, anyValue } from "./any-json.ts";
import { compileArray } from "./array-schema.ts";
import { requireDisjoint } from "./disjoint.ts";
import { choice, type Expression, rule, text } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { literal } from "./json-text.ts";
import {
  isAnnotation,
  isOpen,
  isSchemaObject,
  type SchemaObject,
  step,
  type TypeName,
  typesOf,
  vetKeywords,
} from "./keywords.ts";
import { grammarLimits } from "./limits.ts";
import { mergeSchemas } from "./merge.ts";
import { compileInteger, compileNumber } from "./number-schema.ts";
import { compileObject } from "./object-schema.ts";
import { resolveReference } from "./references.ts";
import { refuse } from "./refusal.ts";
import type { Place, SchemaContext } from "./schema-context.ts";
import { compileString } from "./string-schema.ts";

/** Turns one schema document into rules of a grammar. */
export class SchemaCompiler implements SchemaContext {
  readonly builder: GrammarBuilder;
  readonly #root: unknown;
  readonly #references = new Map<string, string>();
  #schemas = 0;

  constructor(builder: GrammarBuilder, root: unknown) {
    this.builder = builder;
    this.#root = root;
  }

  /** @throws SchemaRefusal for what can't be held exactly */
  compileRoot(): Expression {
    return this.compile(this.#root, { pointer: "", depth: 0, open: new Set(["#"]) });
  }

  /** The schema of a member or item. */
  compileInside(schema: unknown, place: Place, ...keys: readonly (string | number)[]): Expression {
    return this.compile(schema, { pointer: step(place.pointer, ...keys), depth: place.depth + 1, open: new Set() });
  }

  compile(schema: unknown, place: Place): Expression {
    if (place.depth > grammarLimits.maxDepth)
      refuse(place.pointer, `is nested deeper than ${grammarLimits.maxDepth} levels.`);
    this.#count(place.pointer);
    if (schema === false) refuse(place.pointer, "is false, so nothing fits.");
    if (isOpen(schema)) return anyValue(this.builder);
    if (!isSchemaObject(schema)) refuse(place.pointer, "is no schema; it has to be an object or true.");
    vetKeywords(schema, place.pointer);
    if (schema["$ref"] !== undefined && onlyReference(schema)) return this.#reference(schema["$ref"], place);
    return this.#compileFlat(this.flatten(schema, place), place);
  }

  /** The schema with what `$ref` and `allOf` say written into it. */
  flatten(schema: SchemaObject, place: Place): SchemaObject {
    const { $ref: reference, allOf, ...own } = schema;
    let flat: SchemaObject = own;
    if (reference !== undefined) {
      const { target, open } = this.#follow(reference, place);
      flat = this.#mergeIn(flat, target, { ...place, open });
    }
    if (allOf === undefined) return flat;
    if (!Array.isArray(allOf) || allOf.length === 0) refuse(place.pointer, "allOf has to be a list of schemas.");
    for (const [index, part] of allOf.entries()) {
      flat = this.#mergeIn(flat, part, { ...place, pointer: step(place.pointer, "allOf", index) });
    }
    return flat;
  }

  /** References can make a small document unfold without end. */
  #count(pointer: string): void {
    this.#schemas += 1;
    if (this.#schemas > grammarLimits.maxSchemas) {
      refuse(
        pointer,
        `is one schema too many; at most ${grammarLimits.maxSchemas} are looked at, with each use of a $ref.`,
      );
    }
  }

  #mergeIn(flat: SchemaObject, part: unknown, place: Place): SchemaObject {
    this.#count(place.pointer);
    if (isOpen(part)) return flat;
    if (!isSchemaObject(part)) refuse(place.pointer, "is no schema that something fits.");
    vetKeywords(part, place.pointer);
    const inner = this.flatten(part, place);
    return isOpen(flat) ? { ...inner } : mergeSchemas(flat, inner, place.pointer);
  }

  #follow(reference: unknown, place: Place): { readonly target: unknown; readonly open: ReadonlySet<string> } {
    const target = resolveReference(this.#root, reference, place.pointer);
    const name = String(reference);
    if (place.open.has(name)) refuse(place.pointer, `$ref "${name}" leads back to itself without a value in between.`);
    return { target, open: new Set([...place.open, name]) };
  }

  #reference(reference: unknown, place: Place): Expression {
    const { target, open } = this.#follow(reference, place);
    const name = String(reference);
    const known = this.#references.get(name);
    if (known !== undefined) return rule(known);
    const made = this.builder.reserve();
    this.#references.set(name, made);
    return this.builder.define(made, this.compile(target, { pointer: name.slice(1), depth: place.depth, open }));
  }

  /** A schema without `$ref` and `allOf`. */
  #compileFlat(schema: SchemaObject, place: Place): Expression {
    if (schema["const"] !== undefined || schema["enum"] !== undefined) return this.#values(schema, place);
    for (const keyword of ["anyOf", "oneOf"] as const) {
      if (schema[keyword] !== undefined) return this.#branches(schema, keyword, place);
    }
    const types = typesOf(schema, place.pointer);
    if (types === undefined) return anyValue(this.builder);
    const wanted = types.includes("number") ? types.filter((type) => type !== "integer") : types;
    return choice(...wanted.map((type) => this.#typed(type, schema, place)));
  }

  #typed(type: TypeName, schema: SchemaObject, place: Place): Expression {
    switch (type) {
      case "object":
        return compileObject(this, schema, place);
      case "array":
        return compileArray(this, schema, place);
      case "string":
        return compileString(this.builder, schema, place.pointer);
      case "integer":
        return compileInteger(this.builder, schema, place.pointer);
      case "number":
        return compileNumber(this.builder, schema, place.pointer);
      case "boolean":
        return anyBoolean();
      case "null":
        return text("null");
    }
  }

  #values(schema: SchemaObject, place: Place): Expression {
    const listed = schema["enum"] ?? [schema["const"]];
    if (!Array.isArray(listed)) refuse(place.pointer, "enum has to be a list.");
    if (listed.length > grammarLimits.maxEnumValues) {
      refuse(place.pointer, `enum has more than ${grammarLimits.maxEnumValues} values.`);
    }
    const beside = Object.keys(schema).find(
      (keyword) => !isAnnotation(keyword) && !["const", "enum", "type", "nullable", "format"].includes(keyword),
    );
    if (beside !== undefined)
      refuse(place.pointer, `${beside} beside enum or const can't be held; list only the values that fit.`);
    const types = typesOf({ type: schema["type"], nullable: schema["nullable"] }, place.pointer);
    const fits = (value: unknown): boolean =>
      (types === undefined || types.some((type) => isOfType(value, type))) &&
      (schema["const"] === undefined || JSON.stringify(value) === JSON.stringify(schema["const"]));
    const values = listed.filter(fits);
    if (values.length === 0) refuse(place.pointer, "none of the listed values has the type that is asked for.");
    return choice(...values.map(literal));
  }

  #branches(schema: SchemaObject, keyword: "anyOf" | "oneOf", place: Place): Expression {
    const { [keyword]: branches, ...beside } = schema;
    if (!Array.isArray(branches) || branches.length === 0)
      refuse(place.pointer, `${keyword} has to be a list of schemas.`);
    if (branches.length > grammarLimits.maxBranches) {
      refuse(place.pointer, `${keyword} has more than ${grammarLimits.maxBranches} branches.`);
    }
    const wholes: readonly unknown[] = isOpen(beside)
      ? branches
      : branches.map((branch: unknown) => ({ allOf: [beside, branch] }));
    if (keyword === "oneOf") requireDisjoint(this, wholes, place);
    const options = wholes.map((branch, index) =>
      this.compile(branch, { ...place, pointer: step(place.pointer, keyword, index), depth: place.depth + 1 }),
    );
    return choice(...options);
  }
}

function onlyReference(schema: SchemaObject): boolean {
  return Object.keys(schema).every((keyword) => keyword === "$ref" || isAnnotation(keyword));
}

function isOfType(value: unknown, type: TypeName): boolean {
  switch (type) {
    case "object":
      return isSchemaObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "string":
    case "number":
    case "boolean":
      return typeof value === type;
  }
}
