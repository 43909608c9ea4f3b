import { type CodePointRange, includesCodePoint, subtractRanges } from "./code-points.ts";
import { characters, choice, type Expression, nothing, repeat, sequence, text } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { jsonCharacterOf, plainInJson } from "./json-text.ts";

interface Node {
  readonly children: Map<number, Node>;
  isName: boolean;
}

/** A member name, written without escapes, that is none of `names`. */
export function otherKey(builder: GrammarBuilder, names: readonly string[]): Expression {
  const root: Node = { children: new Map(), isName: false };
  for (const name of names) {
    let node = root;
    for (const character of name) {
      const codePoint = character.codePointAt(0) ?? 0;
      const child = node.children.get(codePoint) ?? { children: new Map(), isName: false };
      node.children.set(codePoint, child);
      node = child;
    }
    node.isName = true;
  }
  return builder.rule(sequence(text('"'), differing(builder, root), text('"')));
}

/** What may follow the characters that led to `node`. */
function differing(builder: GrammarBuilder, node: Node): Expression {
  const taken = [...node.children.keys()].map((codePoint): CodePointRange => [codePoint, codePoint]);
  const other = jsonCharacterOf(subtractRanges(plainInJson, taken));
  const any = jsonCharacterOf(plainInJson);
  const options: Expression[] = node.isName ? [] : [nothing];
  if (other !== undefined && any !== undefined) options.push(sequence(other, repeat(any, 0)));
  for (const [codePoint, child] of node.children) {
    // A name with a character that needs an escape is never met, since none is written here.
    if (includesCodePoint(plainInJson, codePoint)) {
      options.push(sequence(characters([[codePoint, codePoint]]), differing(builder, child)));
    }
  }
  return builder.rule(choice(...options));
}
