import { anyString } from "./any-json.ts";
import { choice, type Expression, nothing, optional, sequence, text } from "./expression.ts";
import { bracketed, comma, literal, member } from "./json-text.ts";
import { countOf, isOpen, isSchemaObject, type SchemaObject, step } from "./keywords.ts";
import { otherKey } from "./other-key.ts";
import { refuse } from "./refusal.ts";
import type { Place, SchemaContext } from "./schema-context.ts";

interface Member {
  readonly entry: Expression;
  readonly isRequired: boolean;
}

/**
 * Objects: declared members in their order, optional ones in any subset, then further members where
 * `additionalProperties` describes them (true or a schema). Where it is absent, further members are written only
 * if no member is declared: a grammar that lets a model invent names beside the declared ones helps nobody.
 */
export function compileObject(context: SchemaContext, schema: SchemaObject, place: Place): Expression {
  const members = membersOf(context, schema, place);
  const extra = extraEntry(context, schema, place);
  if (members.length === 0) return mapOf(context, schema, place, extra);
  refuseCounts(schema, members, extra, place.pointer);
  const further = extra === undefined ? nothing : context.builder.repeat(sequence(comma, extra), 0);
  return context.builder.rule(bracketed("{", memberList(context, members, further, extra), "}"));
}

function membersOf(context: SchemaContext, schema: SchemaObject, place: Place): readonly Member[] {
  const { pointer } = place;
  const declared = schema["properties"] ?? {};
  if (!isSchemaObject(declared)) refuse(pointer, "properties has to be an object.");
  const required: unknown = schema["required"] ?? [];
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string")) {
    refuse(pointer, "required has to be a list of names.");
  }
  const members: Member[] = [];
  for (const [name, value] of Object.entries(declared)) {
    const isRequired = required.includes(name);
    if (value === false && !isRequired) continue;
    members.push({ entry: entryOf(context, name, value, place, ["properties", name]), isRequired });
  }
  for (const name of new Set(required.filter((each) => !Object.hasOwn(declared, each)))) {
    const rest = schema["additionalProperties"];
    if (rest === false)
      refuse(pointer, `required names "${name}", which properties does not have and additionalProperties forbids.`);
    members.push({ entry: entryOf(context, name, rest ?? true, place, ["additionalProperties"]), isRequired: true });
  }
  if (members.length > 0 && !isTrivialName(schema["propertyNames"])) {
    refuse(pointer, "propertyNames beside properties or required can't be held; remove it.");
  }
  return members;
}

function entryOf(
  context: SchemaContext,
  name: string,
  schema: unknown,
  place: Place,
  keys: readonly string[],
): Expression {
  return member(literal(name), context.builder.rule(context.compileInside(schema, place, ...keys)));
}

/** A member beside the declared ones. Undefined: none are written. */
function extraEntry(context: SchemaContext, schema: SchemaObject, place: Place): Expression | undefined {
  const rest = schema["additionalProperties"];
  const declared = isSchemaObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const names = [...new Set([...declared, ...required])];
  if (rest === false || (rest === undefined && names.length > 0)) return undefined;
  const value = context.builder.rule(context.compileInside(rest ?? true, place, "additionalProperties"));
  const key = names.length === 0 ? keyOf(context, schema, place) : otherKey(context.builder, names);
  return member(key, value);
}

function keyOf(context: SchemaContext, schema: SchemaObject, place: Place): Expression {
  const names = schema["propertyNames"];
  if (isTrivialName(names)) return anyString(context.builder);
  if (!isSchemaObject(names)) refuse(place.pointer, "propertyNames has to be a schema that a name fits.");
  return context.compile(
    { type: "string", allOf: [names] },
    { ...place, pointer: step(place.pointer, "propertyNames") },
  );
}

function isTrivialName(names: unknown): boolean {
  if (isOpen(names)) return true;
  return (
    isSchemaObject(names) && names["type"] === "string" && isOpen({ ...names, type: undefined, "x-type": "string" })
  );
}

function mapOf(context: SchemaContext, schema: SchemaObject, place: Place, extra: Expression | undefined): Expression {
  const min = countOf(schema, "minProperties", place.pointer) ?? 0;
  const max = countOf(schema, "maxProperties", place.pointer);
  if (min > 1) refuse(place.pointer, "minProperties above 1 can't be held, since names may repeat; list the members.");
  if (extra === undefined || max === 0) {
    if (min > 0) refuse(place.pointer, "minProperties asks for members that nothing allows.");
    return text("{}");
  }
  const more = context.builder.repeat(sequence(comma, extra), 0, max === undefined ? undefined : max - 1);
  const entries = sequence(extra, more);
  return context.builder.rule(bracketed("{", min === 0 ? optional(entries) : entries, "}"));
}

function refuseCounts(
  schema: SchemaObject,
  members: readonly Member[],
  extra: Expression | undefined,
  pointer: string,
): void {
  const required = members.filter((each) => each.isRequired).length;
  if ((countOf(schema, "minProperties", pointer) ?? 0) > required) {
    refuse(pointer, "minProperties above the number of required members can't be held; require them by name.");
  }
  const max = countOf(schema, "maxProperties", pointer);
  if (max !== undefined && (extra !== undefined || max < members.length)) {
    refuse(pointer, "maxProperties below the number of members can't be held; leave members out.");
  }
}

/**
 * The members between the braces. Rule `after(i)` writes the members from `i` on with a comma before each; the
 * first one written has none, so each optional beginning is an option of its own.
 */
function memberList(
  context: SchemaContext,
  members: readonly Member[],
  further: Expression,
  extra: Expression | undefined,
): Expression {
  let after: Expression = further;
  const starts: Expression[] = [];
  let isAllOptional = true;
  for (const { entry, isRequired } of [...members].reverse()) {
    const start = sequence(entry, after);
    if (isRequired) starts.length = 0;
    starts.unshift(start);
    if (isRequired) isAllOptional = false;
    const one = sequence(comma, entry);
    after = context.builder.rule(sequence(isRequired ? one : optional(one), after));
  }
  if (!isAllOptional) return choice(...starts);
  if (extra !== undefined) starts.push(sequence(extra, further));
  return choice(...starts, nothing);
}
