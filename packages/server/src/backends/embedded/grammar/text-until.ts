import { invertRanges, rangesOf } from "./code-points.ts";
import { characters, choice, type Expression, nothing, rule, sequence, text } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";

/** Free text up to and with the first `end`: an automaton with one rule for each matched part of `end`. */
export function textUntil(builder: GrammarBuilder, end: string): Expression {
  const wanted = [...end];
  const names = wanted.map(() => builder.reserve());
  const stateAfter = (matched: number): Expression => {
    const name = names[matched];
    return name === undefined ? nothing : rule(name);
  };
  const alphabet = [...new Set(wanted)];
  for (const [matched, name] of names.entries()) {
    const known = alphabet.map((character) => {
      const state = longestBeginning(wanted, [...wanted.slice(0, matched), character]);
      return sequence(text(character), stateAfter(state));
    });
    builder.define(name, choice(...known, sequence(characters(invertRanges(rangesOf(end))), stateAfter(0))));
  }
  return stateAfter(0);
}

/** How many characters of `wanted` the end of `seen` has. */
function longestBeginning(wanted: readonly string[], seen: readonly string[]): number {
  for (let length = Math.min(wanted.length, seen.length); length > 0; length -= 1) {
    if (seen.slice(-length).join("") === wanted.slice(0, length).join("")) return length;
  }
  return 0;
}
