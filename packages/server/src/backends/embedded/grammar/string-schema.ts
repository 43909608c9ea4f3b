import { anyString } from "./any-json.ts";
import type { Expression } from "./expression.ts";
import { stringFormats } from "./formats.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { anyJsonCharacter, quoted } from "./json-text.ts";
import { countOf, type SchemaObject } from "./keywords.ts";
import { grammarLimits } from "./limits.ts";
import { type Pattern, PatternError, parsePattern } from "./pattern.ts";
import { patternGrammar, withLength } from "./pattern-grammar.ts";
import { refuse } from "./refusal.ts";

/** Strings by length, pattern or format. Lengths count code points. */
export function compileString(builder: GrammarBuilder, schema: SchemaObject, pointer: string): Expression {
  const min = countOf(schema, "minLength", pointer) ?? 0;
  const max = countOf(schema, "maxLength", pointer);
  requireCount(min, "minLength", pointer);
  requireCount(max ?? 0, "maxLength", pointer);
  if (max !== undefined && min > max) refuse(pointer, "minLength is above maxLength, so nothing fits.");
  const asked = askedPattern(schema, pointer);
  if (asked === undefined) {
    return min === 0 && max === undefined
      ? anyString(builder)
      : quoted(builder.repeat(anyJsonCharacter(builder), min, max));
  }
  try {
    const pattern: Pattern = withLength(parsePattern(asked.source), min, max ?? Infinity);
    return builder.rule(quoted(patternGrammar(builder, pattern)));
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return refuse(pointer, `${asked.keyword} ${error.message}.`);
  }
}

function askedPattern(
  schema: SchemaObject,
  pointer: string,
): { readonly keyword: string; readonly source: string } | undefined {
  const { pattern, format } = schema;
  if (pattern !== undefined && format !== undefined)
    refuse(pointer, "pattern and format together can't be held; keep one.");
  if (pattern !== undefined) {
    if (typeof pattern !== "string" || !isExpression(pattern)) {
      refuse(pointer, "pattern is no regular expression (JavaScript's, with the flag u).");
    }
    return { keyword: "pattern", source: pattern };
  }
  if (format === undefined) return undefined;
  const source = typeof format === "string" && Object.hasOwn(stringFormats, format) ? stringFormats[format] : undefined;
  if (source === undefined) {
    const known = Object.keys(stringFormats).join(", ");
    refuse(pointer, `format ${JSON.stringify(format)} can't be held; use one of ${known}, or a pattern.`);
  }
  return { keyword: "format", source };
}

function isExpression(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    // The reason why it can't be read is of no use to the client beside the place.
    return false;
  }
}

function requireCount(value: number, keyword: string, pointer: string): void {
  if (value > grammarLimits.maxRepetitions)
    refuse(pointer, `${keyword} is above ${grammarLimits.maxRepetitions}; lower it or leave it out.`);
}
