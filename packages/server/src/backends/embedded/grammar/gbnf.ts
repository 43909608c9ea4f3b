import type { CodePointRange } from "./code-points.ts";
import type { Expression } from "./expression.ts";

/** Writes one expression in llama.cpp's GBNF. */
export function toGbnf(expression: Expression): string {
  return write(expression, "body");
}

/** Where the text stands decides whether it needs parentheses. */
type Place = "body" | "in-sequence" | "repeated";

function write(expression: Expression, place: Place): string {
  switch (expression.kind) {
    case "text":
      return place === "repeated" && [...expression.text].length > 1
        ? `(${quote(expression.text)})`
        : quote(expression.text);
    case "characters":
      return `[${expression.ranges.map(writeRange).join("")}]`;
    case "rule":
      return expression.name;
    case "sequence": {
      const joined = expression.parts.map((part) => write(part, "in-sequence")).join(" ");
      return place === "repeated" ? `(${joined})` : joined;
    }
    case "choice": {
      const joined = expression.options.map((option) => write(option, "body")).join(" | ");
      return place === "body" ? joined : `(${joined})`;
    }
    case "repeat": {
      const inner = write(expression.part, "repeated");
      const whole = (expression.part.kind === "repeat" ? `(${inner})` : inner) + quantifier(expression);
      return place === "repeated" ? `(${whole})` : whole;
    }
  }
}

function quantifier({ min, max }: { readonly min: number; readonly max?: number }): string {
  if (max === undefined) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

function writeRange([from, to]: CodePointRange): string {
  return from === to ? writeCodePoint(from) : `${writeCodePoint(from)}-${writeCodePoint(to)}`;
}

/** ASCII letters and digits as they are; everything else as an escape, so nothing has a meaning of its own. */
function writeCodePoint(codePoint: number): string {
  const character = String.fromCodePoint(codePoint);
  if (/^[a-zA-Z0-9]$/.test(character)) return character;
  const hex = codePoint.toString(16).toUpperCase();
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

function quote(value: string): string {
  let result = '"';
  for (const character of value) {
    const codePoint = character.codePointAt(0) ?? 0;
    if (character === '"' || character === "\\") result += `\\${character}`;
    else if (character === "\n") result += "\\n";
    else if (codePoint < 0x20 || codePoint === 0x7f) result += writeCodePoint(codePoint);
    else result += character;
  }
  return `${result}"`;
}
