import { type CodePointRange, includesCodePoint, subtractRanges } from "./code-points.ts";
import { characters, choice, type Expression, optional, repeat, sequence, text } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";

/** Code points that stand for themselves inside a JSON string. */
export const plainInJson: readonly CodePointRange[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0x7e],
  [0x80, 0xd7ff],
  [0xe000, 0x10ffff],
];

const hexDigits: readonly CodePointRange[] = [
  [0x30, 0x39],
  [0x41, 0x46],
  [0x61, 0x66],
];

const shortEscapes: readonly (readonly [codePoint: number, escape: string])[] = [
  [0x22, '\\"'],
  [0x5c, "\\\\"],
  [0x08, "\\b"],
  [0x0c, "\\f"],
  [0x0a, "\\n"],
  [0x0d, "\\r"],
  [0x09, "\\t"],
];

/** After a comma or colon: at most one space. Anything longer, small models write without end. */
const optionalSpace: Expression = optional(text(" "));

/**
 * One character out of `ranges`, as it is written inside a JSON string. Control characters without a short escape only
 * when there is nothing else. Undefined: none of them can be written.
 */
export function jsonCharacterOf(ranges: readonly CodePointRange[]): Expression | undefined {
  const unwritable = subtractRanges(ranges, plainInJson);
  const plain = subtractRanges(ranges, unwritable);
  const options: Expression[] = plain.length === 0 ? [] : [characters(plain)];
  for (const [codePoint, written] of shortEscapes) {
    if (includesCodePoint(ranges, codePoint)) options.push(text(written));
  }
  if (options.length > 0) return choice(...options);
  const controls = Array.from({ length: 0x20 }, (_, codePoint) => codePoint).filter((each) =>
    includesCodePoint(ranges, each),
  );
  if (controls.length === 0) return undefined;
  return choice(...controls.map((codePoint) => text(`\\u${codePoint.toString(16).padStart(4, "0")}`)));
}

/** Any character of a JSON string: one code point each, never half a surrogate pair. */
export function anyJsonCharacter(builder: GrammarBuilder): Expression {
  return builder.shared("character", () => {
    const hex = characters(hexDigits);
    const notSurrogate = choice(
      sequence(
        characters(
          subtractRanges(hexDigits, [
            [0x44, 0x44],
            [0x64, 0x64],
          ]),
        ),
        repeat(hex, 3, 3),
      ),
      sequence(
        characters([
          [0x44, 0x44],
          [0x64, 0x64],
        ]),
        characters([[0x30, 0x37]]),
        repeat(hex, 2, 2),
      ),
    );
    const escaped = choice(
      characters(['"', "/", "\\", "b", "f", "n", "r", "t"].map(single)),
      sequence(text("u"), notSurrogate),
    );
    return choice(characters(plainInJson), sequence(text("\\"), escaped));
  });
}

function single(character: string): CodePointRange {
  const codePoint = character.codePointAt(0) ?? 0;
  return [codePoint, codePoint];
}

/** A JSON string around an expression of JSON characters. */
export function quoted(inner: Expression): Expression {
  return sequence(text('"'), inner, text('"'));
}

/** One JSON value as compact text. */
export function literal(value: unknown): Expression {
  return text(JSON.stringify(value));
}

/** `{`, entries with commas, `}` and the like. @param items undefined: empty */
export function bracketed(open: string, items: Expression | undefined, close: string): Expression {
  return items === undefined ? text(open + close) : sequence(text(open), items, text(close));
}

export const comma: Expression = sequence(text(","), optionalSpace);

/** `"key":` with its optional space and value. */
export function member(key: Expression, value: Expression): Expression {
  return sequence(key, text(":"), optionalSpace, value);
}
