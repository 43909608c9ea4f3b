import type { PromptPiece } from "./chat-format.ts";

/**
 * Keeps clients' texts from becoming control tokens. Where a client's text has the text of a special token, that place
 * is put between two marks before the template is rendered. The marks are random lower-case letters and digits, so
 * trimming, JSON and case changes of a template leave them alone; afterwards what stands between them becomes a piece
 * of plain text, and the marks vanish. Without special texts there are no marks, and the text is tokenised as usual.
 *
 * Numbers that JavaScript can't hold exactly pass the template as texts in the same way (`number`).
 */
export class TextGuard {
  readonly #nonce: string;
  readonly #tokens: ReadonlyMap<string, readonly string[]>;
  readonly #numbers: string[] = [];
  readonly #anyMark: RegExp;
  readonly #markedText: RegExp;
  readonly #numberPlace: RegExp;
  #marks = 0;

  /**
   * @param tokens special tokens by their first character (`groupTokens`)
   * @param clientText all texts of the request, where the nonce must not occur
   */
  constructor(tokens: ReadonlyMap<string, readonly string[]>, clientText: string) {
    this.#tokens = tokens;
    let nonce = makeNonce();
    while (clientText.includes(nonce)) nonce = makeNonce();
    this.#nonce = nonce;
    this.#anyMark = new RegExp(`${nonce}[oc]\\d+x`, "gi");
    this.#markedText = new RegExp(`${nonce}o(\\d+)x((?:(?!${nonce}o\\1x)[\\s\\S])*?)${nonce}c\\1x`, "gi");
    this.#numberPlace = new RegExp(`"${nonce}n(\\d+)x"|${nonce}n(\\d+)x`, "gi");
  }

  /** The value with every special text in it marked, in keys too. */
  protect(value: unknown): unknown {
    if (typeof value === "string") return this.mark(value);
    if (Array.isArray(value)) return value.map((item) => this.protect(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.mark(key), this.protect(item)]));
  }

  mark(text: string): string {
    let result = "";
    let done = 0;
    for (const [from, to] of this.#specialPlaces(text)) {
      this.#marks += 1;
      result += `${text.slice(done, from)}${this.#nonce}o${this.#marks}x${text.slice(from, to)}${this.#nonce}c${this.#marks}x`;
      done = to;
    }
    return result + text.slice(done);
  }

  /** Stands for a number's text; a template that writes it as a JSON string gets its quotes taken off. */
  number(raw: string): string {
    this.#numbers.push(raw);
    return `${this.#nonce}n${this.#numbers.length - 1}x`;
  }

  /** Text without marks, for messages to people. */
  unmarked(text: string): string {
    return this.#withNumbers(text).replaceAll(this.#anyMark, "");
  }

  /** What was rendered, cut at the marks. A mark without its partner (a template may cut a text) is dropped. */
  pieces(rendered: string): PromptPiece[] {
    const text = this.#withNumbers(rendered);
    const pieces: { text: string; parseSpecial: boolean }[] = [];
    const add = (part: string, parseSpecial: boolean): void => {
      const last = pieces.at(-1);
      if (part === "") return;
      if (last?.parseSpecial === parseSpecial) last.text += part;
      else pieces.push({ text: part, parseSpecial });
    };
    let done = 0;
    for (const found of text.matchAll(this.#markedText)) {
      add(this.unmarked(text.slice(done, found.index)), true);
      add(this.unmarked(found[2] ?? ""), false);
      done = found.index + found[0].length;
    }
    add(this.unmarked(text.slice(done)), true);
    return pieces;
  }

  #withNumbers(text: string): string {
    if (this.#numbers.length === 0) return text;
    return text.replaceAll(this.#numberPlace, (whole, quoted, bare) => this.#numbers[Number(quoted ?? bare)] ?? whole);
  }

  /** Places of special texts, overlapping ones as one place. */
  #specialPlaces(text: string): [from: number, to: number][] {
    const places: [from: number, to: number][] = [];
    for (let at = 0; at < text.length; at += 1) {
      for (const token of this.#tokens.get(text.charAt(at)) ?? []) {
        if (!text.startsWith(token, at)) continue;
        const last = places.at(-1);
        const to = at + token.length;
        if (last !== undefined && at < last[1]) last[1] = Math.max(last[1], to);
        else places.push([at, to]);
      }
    }
    return places;
  }
}

/** Special tokens by their first UTF-16 unit. */
export function groupTokens(tokens: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const token of new Set(tokens)) {
    if (token === "") continue;
    const group = groups.get(token.charAt(0)) ?? [];
    group.push(token);
    groups.set(token.charAt(0), group);
  }
  return groups;
}

function makeNonce(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(10));
  return `q${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
