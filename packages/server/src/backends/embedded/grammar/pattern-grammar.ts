import { choice, type Expression, nothing, sequence } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { jsonCharacterOf } from "./json-text.ts";
import { type Pattern, PatternError } from "./pattern.ts";

interface Lengths {
  /** Code points. */
  readonly min: number;
  readonly max: number;
}

/** The inside of a JSON string whose text matches the pattern. */
export function patternGrammar(builder: GrammarBuilder, pattern: Pattern): Expression {
  switch (pattern.kind) {
    case "set": {
      const character = jsonCharacterOf(pattern.ranges);
      if (character === undefined) throw new PatternError("asks for characters that no JSON text here can have");
      return character;
    }
    case "sequence":
      return sequence(...pattern.parts.map((part) => patternGrammar(builder, part)));
    case "choice":
      return choice(...pattern.options.map((option) => patternGrammar(builder, option)));
    case "repeat":
      if (pattern.max === 0) return nothing;
      return builder.repeat(
        patternGrammar(builder, pattern.part),
        pattern.min,
        pattern.max === Infinity ? undefined : pattern.max,
      );
  }
}

/**
 * Narrows the pattern to texts of `min` … `max` code points. Possible when it has them anyway, or when only one part
 * of its sequence is of free length and is made of single characters.
 * @throws PatternError when it can't be narrowed
 */
export function withLength(pattern: Pattern, min: number, max: number): Pattern {
  const lengths = lengthsOf(pattern);
  if (lengths.min >= min && lengths.max <= max) return pattern;
  const parts = pattern.kind === "sequence" ? pattern.parts : [pattern];
  const free = parts.filter((part) => lengthsOf(part).min !== lengthsOf(part).max);
  const [only] = free;
  if (free.length !== 1 || only?.kind !== "repeat" || only.part.kind !== "set") {
    throw new PatternError("can't be held together with minLength or maxLength; put the length into the pattern");
  }
  const others = lengths.min - only.min;
  const narrowed: Pattern = { ...only, min: Math.max(only.min, min - others), max: Math.min(only.max, max - others) };
  if (narrowed.min > narrowed.max) throw new PatternError("fits no text of the length that is asked for");
  return { kind: "sequence", parts: parts.map((part) => (part === only ? narrowed : part)) };
}

function lengthsOf(pattern: Pattern): Lengths {
  switch (pattern.kind) {
    case "set":
      return { min: 1, max: 1 };
    case "sequence":
      return pattern.parts
        .map(lengthsOf)
        .reduce((sum, each) => ({ min: sum.min + each.min, max: sum.max + each.max }), {
          min: 0,
          max: 0,
        });
    case "choice": {
      const all = pattern.options.map(lengthsOf);
      return { min: Math.min(...all.map((each) => each.min)), max: Math.max(...all.map((each) => each.max)) };
    }
    case "repeat": {
      const inner = lengthsOf(pattern.part);
      // 0 · Infinity is no number.
      return { min: inner.min * pattern.min, max: inner.max === 0 ? 0 : inner.max * pattern.max };
    }
  }
}
