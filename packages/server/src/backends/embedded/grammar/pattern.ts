import { type CodePointRange, digitRange, invertRanges, normalizeRanges, rangesOf } from "./code-points.ts";
import { grammarLimits } from "./limits.ts";

/** A regular expression as data. Lengths count code points. */
export type Pattern =
  | { readonly kind: "set"; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: "sequence"; readonly parts: readonly Pattern[] }
  | { readonly kind: "choice"; readonly options: readonly Pattern[] }
  | { readonly kind: "repeat"; readonly part: Pattern; readonly min: number; readonly max: number };

/** What the parser says about a part that it does not know. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

const anyText: Pattern = { kind: "repeat", part: { kind: "set", ranges: invertRanges([]) }, min: 0, max: Infinity };

const wordRange: readonly CodePointRange[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const lineEnds = rangesOf("\n\r\u2028\u2029");
const spaceRange = normalizeRanges([
  ...rangesOf("\t\v\f \u00a0\u1680\u202f\u205f\u3000\ufeff"),
  ...lineEnds,
  [0x2000, 0x200a],
]);
const classEscapes: Readonly<Record<string, readonly CodePointRange[]>> = {
  d: digitRange,
  D: invertRanges(digitRange),
  w: wordRange,
  W: invertRanges(wordRange),
  s: spaceRange,
  S: invertRanges(spaceRange),
};
const controlEscapes: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/**
 * Reads the regular part of JavaScript's expressions: literals, classes, groups, alternatives, counts. A pattern
 * without `^` or `$` may stand anywhere in the text, so free text is added there.
 * @throws PatternError for everything else (look-around, back references, word borders, properties)
 */
export function parsePattern(source: string): Pattern {
  if (source.length > grammarLimits.maxPatternCharacters) {
    throw new PatternError(`is longer than ${grammarLimits.maxPatternCharacters} characters`);
  }
  return new PatternParser(source).whole();
}

class PatternParser {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#characters = [...source];
  }

  whole(): Pattern {
    const options = [this.#anchored()];
    while (this.#take("|")) options.push(this.#anchored());
    if (this.#peek() !== undefined) throw new PatternError("has a ) too many");
    return options.length === 1 && options[0] !== undefined ? options[0] : { kind: "choice", options };
  }

  #anchored(): Pattern {
    const fromStart = this.#take("^");
    const body = this.#parts();
    const toEnd = this.#take("$");
    const parts = [...(fromStart ? [] : [anyText]), ...body, ...(toEnd ? [] : [anyText])];
    return { kind: "sequence", parts };
  }

  #choice(): Pattern {
    const options: Pattern[] = [{ kind: "sequence", parts: this.#parts() }];
    while (this.#take("|")) options.push({ kind: "sequence", parts: this.#parts() });
    return options.length === 1 && options[0] !== undefined ? options[0] : { kind: "choice", options };
  }

  #parts(): Pattern[] {
    const parts: Pattern[] = [];
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek()) {
      if (next === "$" && this.#endsAlternative()) break;
      if (next === "^" || next === "$") throw new PatternError(`has ${next} inside`);
      parts.push(this.#counted(this.#atom()));
    }
    return parts;
  }

  #endsAlternative(): boolean {
    const after = this.#characters[this.#at + 1];
    return after === undefined || after === "|";
  }

  #atom(): Pattern {
    const character = this.#next();
    switch (character) {
      case "(":
        return this.#group();
      case "[":
        return { kind: "set", ranges: this.#class() };
      case ".":
        return { kind: "set", ranges: invertRanges(lineEnds) };
      case "\\":
        return { kind: "set", ranges: this.#escape() };
      case "*":
      case "+":
      case "?":
      case "{":
      case "}":
      case "]":
        throw new PatternError(`has a ${character} that stands for nothing`);
      default:
        return { kind: "set", ranges: rangesOf(character) };
    }
  }

  #group(): Pattern {
    if (this.#take("?")) {
      if (this.#take("<")) {
        if (this.#peek() === "=" || this.#peek() === "!") throw new PatternError("looks behind");
        while (this.#next() !== ">");
      } else if (!this.#take(":")) throw new PatternError("looks ahead or sets flags");
    }
    const inner = this.#choice();
    if (!this.#take(")")) throw new PatternError("has an open group");
    return inner;
  }

  #counted(part: Pattern): Pattern {
    const [min, max] = this.#count() ?? [1, 1];
    // Lazy counts match the same texts.
    if (min !== 1 || max !== 1) this.#take("?");
    if (Math.max(min, max === Infinity ? 0 : max) > grammarLimits.maxRepetitions) {
      throw new PatternError(`counts above ${grammarLimits.maxRepetitions}`);
    }
    if (min > max) throw new PatternError("has a count whose ends are swapped");
    return min === 1 && max === 1 ? part : { kind: "repeat", part, min, max };
  }

  #count(): readonly [number, number] | undefined {
    if (this.#take("*")) return [0, Infinity];
    if (this.#take("+")) return [1, Infinity];
    if (this.#take("?")) return [0, 1];
    if (this.#peek() !== "{") return undefined;
    const found = /^\{(\d+)(,(\d*))?\}/.exec(this.#characters.slice(this.#at, this.#at + 24).join(""));
    if (found === null) throw new PatternError("has a { that is no count");
    this.#at += found[0].length;
    const min = Number(found[1]);
    return [min, found[2] === undefined ? min : found[3] === "" ? Infinity : Number(found[3])];
  }

  #class(): readonly CodePointRange[] {
    const isInverted = this.#take("^");
    const ranges: CodePointRange[] = [];
    while (!this.#take("]")) {
      const from = this.#classMember();
      if (this.#peek() !== "-" || this.#characters[this.#at + 1] === "]") {
        ranges.push(...from);
        continue;
      }
      this.#next();
      ranges.push(rangeBetween(from, this.#classMember()));
    }
    return isInverted ? invertRanges(ranges) : normalizeRanges(ranges);
  }

  #classMember(): readonly CodePointRange[] {
    const character = this.#next();
    if (character !== "\\") return rangesOf(character);
    if (this.#take("b")) return [[8, 8]];
    if (this.#take("-")) return rangesOf("-");
    return this.#escape();
  }

  #escape(): readonly CodePointRange[] {
    const character = this.#next();
    const known = classEscapes[character];
    if (known !== undefined) return known;
    const control = controlEscapes[character];
    if (control !== undefined) return [[control, control]];
    if (character === "x") return this.#hex(2);
    if (character === "u") return this.#take("{") ? this.#bracedHex() : this.#hex(4);
    if (/[a-zA-Z0-9]/.test(character)) throw new PatternError(`uses \\${character}`);
    return rangesOf(character);
  }

  #hex(length: number): readonly CodePointRange[] {
    let digits = "";
    while (digits.length < length) digits += this.#next();
    return codePointOf(digits);
  }

  #bracedHex(): readonly CodePointRange[] {
    let digits = "";
    for (let next = this.#next(); next !== "}"; next = this.#next()) digits += next;
    return codePointOf(digits);
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(wanted: string): boolean {
    if (this.#peek() !== wanted) return false;
    this.#at += 1;
    return true;
  }

  #next(): string {
    const character = this.#peek();
    if (character === undefined) throw new PatternError("ends too early");
    this.#at += 1;
    return character;
  }
}

function codePointOf(hex: string): readonly CodePointRange[] {
  const codePoint = Number.parseInt(hex, 16);
  if (!/^[0-9a-fA-F]{1,6}$/.test(hex) || codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint <= 0xdfff)) {
    throw new PatternError("has an escape that is no character");
  }
  return [[codePoint, codePoint]];
}

function rangeBetween(from: readonly CodePointRange[], to: readonly CodePointRange[]): CodePointRange {
  const [low, high] = [from[0], to[0]];
  const areSingle = low !== undefined && high !== undefined && low[0] === low[1] && high[0] === high[1];
  if (!areSingle || from.length > 1 || to.length > 1 || low[0] > high[0]) {
    throw new PatternError("has a class range whose ends are no characters in order");
  }
  return [low[0], high[0]];
}
