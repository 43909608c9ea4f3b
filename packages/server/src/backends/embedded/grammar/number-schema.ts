import { anyNumber } from "./any-json.ts";
import { decimalBetween, isPlainDecimal } from "./decimal-range.ts";
import type { Expression } from "./expression.ts";
import { integerFormats } from "./formats.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { integerBetween, largestInteger } from "./integer-range.ts";
import { numberOf, type SchemaObject } from "./keywords.ts";
import { refuse } from "./refusal.ts";

interface Limit {
  readonly value: number;
  readonly exclusive: boolean;
}

/** Integers within their bounds, digit by digit; without a bound, up to the largest one that stays exact. */
export function compileInteger(builder: GrammarBuilder, schema: SchemaObject, pointer: string): Expression {
  refuseMultiples(schema, pointer);
  const { min, max } = limitsOf(schema, pointer);
  const low = min === undefined ? -largestInteger : lowestInteger(min, pointer);
  const high = max === undefined ? largestInteger : highestInteger(max, pointer);
  return builder.shared(
    `integer ${low} ${high}`,
    () => integerBetween(low, high) ?? refuse(pointer, "no integer lies between minimum and maximum."),
  );
}

/** Numbers; with bounds, only where decimals can be compared exactly digit by digit. */
export function compileNumber(builder: GrammarBuilder, schema: SchemaObject, pointer: string): Expression {
  if (schema["multipleOf"] === 1) return compileInteger(builder, schema, pointer);
  refuseMultiples(schema, pointer);
  const { min, max } = limitsOf(schema, pointer);
  if (min === undefined && max === undefined) return anyNumber(builder);
  for (const limit of [min, max]) {
    if (limit !== undefined && !isPlainDecimal(limit.value)) {
      refuse(pointer, `the bound ${limit.value} can't be held exactly; use one without exponent and below 10^15.`);
    }
  }
  const found = decimalBetween({ ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) });
  return found ?? refuse(pointer, "no number that can be written exactly lies between minimum and maximum.");
}

function refuseMultiples(schema: SchemaObject, pointer: string): void {
  const value = schema["multipleOf"];
  if (value !== undefined && value !== 1)
    refuse(pointer, "multipleOf can't be held by this model's grammar; remove it.");
}

/** The tightest bound on each side. */
function limitsOf(schema: SchemaObject, pointer: string): { readonly min?: Limit; readonly max?: Limit } {
  const format = typeof schema["format"] === "string" ? integerFormats[schema["format"]] : undefined;
  const lower = [
    ...bound(numberOf(schema, "minimum", pointer), false),
    ...bound(numberOf(schema, "exclusiveMinimum", pointer), true),
    ...bound(format?.[0], false),
  ];
  const upper = [
    ...bound(numberOf(schema, "maximum", pointer), false),
    ...bound(numberOf(schema, "exclusiveMaximum", pointer), true),
    ...bound(format?.[1], false),
  ];
  const min = lower.sort((a, b) => b.value - a.value || Number(b.exclusive) - Number(a.exclusive))[0];
  const max = upper.sort((a, b) => a.value - b.value || Number(b.exclusive) - Number(a.exclusive))[0];
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

function bound(value: number | undefined, exclusive: boolean): Limit[] {
  return value === undefined ? [] : [{ value, exclusive }];
}

function lowestInteger({ value, exclusive }: Limit, pointer: string): bigint {
  return exact(exclusive && Number.isInteger(value) ? value + 1 : Math.ceil(value), pointer);
}

function highestInteger({ value, exclusive }: Limit, pointer: string): bigint {
  return exact(exclusive && Number.isInteger(value) ? value - 1 : Math.floor(value), pointer);
}

function exact(value: number, pointer: string): bigint {
  if (!Number.isSafeInteger(value))
    refuse(pointer, `the bound ${value} is too large to be held exactly (limit 2^53 - 1).`);
  return BigInt(value);
}
