import { choice, type Expression, nothing, optional, sequence } from "./expression.ts";
import { bracketed, comma } from "./json-text.ts";
import { countOf, type SchemaObject } from "./keywords.ts";
import { grammarLimits } from "./limits.ts";
import { refuse } from "./refusal.ts";
import type { Place, SchemaContext } from "./schema-context.ts";

interface ItemCount {
  readonly min: number;
  readonly max: number | undefined;
}

/** Arrays. Beyond `prefixItems`, items are written only where `items` describes them. */
export function compileArray(context: SchemaContext, schema: SchemaObject, place: Place): Expression {
  const { pointer } = place;
  if (schema["uniqueItems"] === true) refuse(pointer, "uniqueItems can't be held by this model's grammar; remove it.");
  if (Array.isArray(schema["items"])) refuse(pointer, "items as a list can't be held; use prefixItems.");
  const count = countsOf(schema, pointer);
  const prefix = schema["prefixItems"] ?? [];
  if (!Array.isArray(prefix)) refuse(pointer, "prefixItems has to be a list of schemas.");
  const max = count.max;
  if (max === 0) return bracketed("[", undefined, "]");
  const first = prefix
    .slice(0, max)
    .map((item: unknown, index) => context.builder.rule(context.compileInside(item, place, "prefixItems", index)));
  const rest = restItems(context, schema, place, first.length, count);
  if (first.length === 0) return bracketed("[", rest, "]");
  return bracketed("[", withPrefix(first, rest, count.min), "]");
}

function countsOf(schema: SchemaObject, pointer: string): ItemCount {
  const min = countOf(schema, "minItems", pointer) ?? 0;
  const max = countOf(schema, "maxItems", pointer);
  for (const [keyword, value] of [["minItems", min] as const, ["maxItems", max ?? 0] as const]) {
    if (value > grammarLimits.maxRepetitions)
      refuse(pointer, `${keyword} is above ${grammarLimits.maxRepetitions}; lower it or leave it out.`);
  }
  if (max !== undefined && min > max) refuse(pointer, "minItems is above maxItems, so nothing fits.");
  return { min, max };
}

/** Items after the prefix, without a comma before the first. Undefined: none are written. */
function restItems(
  context: SchemaContext,
  schema: SchemaObject,
  place: Place,
  prefixLength: number,
  { min, max }: ItemCount,
): Expression | undefined {
  const needed = Math.max(0, min - prefixLength);
  const allowed = max === undefined ? undefined : max - prefixLength;
  const isUndescribed = schema["items"] === undefined && prefixLength > 0 && needed === 0;
  if (schema["items"] === false || isUndescribed || allowed === 0) {
    if (needed > 0) refuse(place.pointer, "minItems asks for more items than prefixItems and items allow.");
    return undefined;
  }
  const { builder } = context;
  const item = builder.rule(context.compileInside(schema["items"] ?? true, place, "items"));
  const more = builder.repeat(
    sequence(comma, item),
    Math.max(0, needed - 1),
    allowed === undefined ? undefined : allowed - 1,
  );
  const items = sequence(item, more);
  return needed === 0 ? optional(items) : items;
}

/** A prefix may end early, but not before `min` items. */
function withPrefix(first: readonly Expression[], rest: Expression | undefined, min: number): Expression {
  // `rest` is either needed or optional as a whole, so its comma goes inside.
  let tail: Expression = rest === undefined ? nothing : afterComma(rest);
  for (let index = first.length - 1; index >= 0; index -= 1) {
    const item = first[index] ?? nothing;
    const whole = sequence(index === 0 ? nothing : comma, item, tail);
    tail = index < min ? whole : optional(whole);
  }
  return tail;
}

function afterComma(items: Expression): Expression {
  if (items.kind !== "repeat") return sequence(comma, items);
  return choice(sequence(comma, items.part), nothing);
}
