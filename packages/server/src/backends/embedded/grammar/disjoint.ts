import { isOpen, isSchemaObject, type SchemaObject, step, type TypeName, typesOf } from "./keywords.ts";
import { refuse } from "./refusal.ts";
import type { Place, SchemaContext } from "./schema-context.ts";

/**
 * `oneOf` is written as a choice, which is right only when what one branch writes fits no other branch. Known by
 * different types, different constants, a member with different constants, or a required member that the other
 * branch does not know.
 * @throws SchemaRefusal when that can't be seen
 */
export function requireDisjoint(context: SchemaContext, branches: readonly unknown[], place: Place): void {
  const flat = branches.map((branch, index) =>
    flattened(context, branch, { ...place, pointer: step(place.pointer, "oneOf", index) }),
  );
  for (const [index, first] of flat.entries()) {
    for (const second of flat.slice(index + 1)) {
      if (first !== undefined && second !== undefined && areDisjoint(context, first, second, place)) continue;
      refuse(
        place.pointer,
        "oneOf whose branches may overlap can't be held; use anyOf, or a member with a const in each branch.",
      );
    }
  }
}

function flattened(context: SchemaContext, branch: unknown, place: Place): SchemaObject | undefined {
  if (isOpen(branch) || !isSchemaObject(branch)) return undefined;
  return context.flatten(branch, place);
}

function areDisjoint(context: SchemaContext, first: SchemaObject, second: SchemaObject, place: Place): boolean {
  const [left, right] = [valuesOf(first), valuesOf(second)];
  if (left !== undefined && right !== undefined) return !left.some((value) => right.includes(value));
  const types = commonTypes(first, second, place.pointer);
  if (types.length === 0) return true;
  if (types.some((type) => type !== "object")) return false;
  return misses(first, second) || misses(second, first) || differsByConstant(context, first, second, place);
}

function commonTypes(first: SchemaObject, second: SchemaObject, pointer: string): readonly TypeName[] {
  const all: readonly TypeName[] = ["object", "array", "string", "number", "boolean", "null"];
  const widened = (schema: SchemaObject): readonly TypeName[] =>
    (constantTypes(schema) ?? typesOf(schema, pointer) ?? all).map((type) => (type === "integer" ? "number" : type));
  const right = widened(second);
  return widened(first).filter((type) => right.includes(type));
}

function constantTypes(schema: SchemaObject): readonly TypeName[] | undefined {
  return valuesOf(schema)?.map((json): TypeName => {
    const value: unknown = JSON.parse(json);
    if (value === null) return "null";
    if (Array.isArray(value)) return "array";
    return typeof value === "string"
      ? "string"
      : typeof value === "number"
        ? "number"
        : typeof value === "boolean"
          ? "boolean"
          : "object";
  });
}

/** The constants of a schema as JSON texts. */
function valuesOf(schema: SchemaObject): readonly string[] | undefined {
  if (schema["const"] !== undefined) return [JSON.stringify(schema["const"])];
  const listed = schema["enum"];
  return Array.isArray(listed) ? listed.map((value) => JSON.stringify(value)) : undefined;
}

/** Whether objects that `writer` writes never have a member that `reader` requires. */
function misses(writer: SchemaObject, reader: SchemaObject): boolean {
  const names = membersOf(writer);
  const extra = writer["additionalProperties"];
  const isClosed = extra === false || (extra === undefined && Object.keys(names).length > 0);
  return (
    isClosed && requiredOf(reader).some((name) => !Object.hasOwn(names, name) && !requiredOf(writer).includes(name))
  );
}

function differsByConstant(context: SchemaContext, first: SchemaObject, second: SchemaObject, place: Place): boolean {
  const [left, right] = [membersOf(first), membersOf(second)];
  return requiredOf(first).some((name) => {
    if (!requiredOf(second).includes(name) || !Object.hasOwn(left, name) || !Object.hasOwn(right, name)) return false;
    const [one, other] = [flattened(context, left[name], place), flattened(context, right[name], place)];
    const [ones, others] = [one && valuesOf(one), other && valuesOf(other)];
    return ones !== undefined && others !== undefined && !ones.some((value) => others.includes(value));
  });
}

function membersOf(schema: SchemaObject): SchemaObject {
  const members = schema["properties"];
  return isSchemaObject(members) ? members : {};
}

function requiredOf(schema: SchemaObject): readonly string[] {
  const required: unknown = schema["required"];
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}
