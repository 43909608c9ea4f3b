import { digitRange } from "./code-points.ts";
import { characters, choice, type Expression, optional, repeat, sequence, text } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import { anyJsonCharacter, bracketed, comma, member, quoted } from "./json-text.ts";

const digit = characters(digitRange);
const firstDigit = characters([[0x31, 0x39]]);

export function anyString(builder: GrammarBuilder): Expression {
  return builder.shared("string", () => quoted(repeat(anyJsonCharacter(builder), 0)));
}

/** Up to 16 digits before the point and 15 after it, exponents of two digits: digits without end are a known loop. */
export function anyNumber(builder: GrammarBuilder): Expression {
  return builder.shared("number", () => {
    const exponent = sequence(
      characters([
        [0x45, 0x45],
        [0x65, 0x65],
      ]),
      optional(
        characters([
          [0x2b, 0x2b],
          [0x2d, 0x2d],
        ]),
      ),
      repeat(digit, 1, 2),
    );
    return sequence(
      optional(text("-")),
      choice(text("0"), sequence(firstDigit, repeat(digit, 0, 15))),
      optional(sequence(text("."), repeat(digit, 1, 15))),
      optional(exponent),
    );
  });
}

export function anyBoolean(): Expression {
  return choice(text("true"), text("false"));
}

function anyArray(builder: GrammarBuilder): Expression {
  return builder.shared("array", () => {
    const value = anyValue(builder);
    return sequence(text("["), optional(sequence(value, repeat(sequence(comma, value), 0))), text("]"));
  });
}

export function anyObject(builder: GrammarBuilder): Expression {
  return builder.shared("object", () => mapOf(anyString(builder), anyValue(builder)));
}

/** Any JSON value. */
export function anyValue(builder: GrammarBuilder): Expression {
  return builder.shared("value", () =>
    choice(anyObject(builder), anyArray(builder), anyString(builder), anyNumber(builder), anyBoolean(), text("null")),
  );
}

/** An object with any number of members of one kind. */
function mapOf(key: Expression, value: Expression): Expression {
  const entry = member(key, value);
  return bracketed("{", optional(sequence(entry, repeat(sequence(comma, entry), 0))), "}");
}
