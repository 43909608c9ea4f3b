import { isLoose, listOf } from "../shared/openai/loose.ts";

/** Misses in a row after which a stream's chunks are taken to differ in more than their text. */
const mostMisses = 8;

/**
 * The usual chunk of a stream: one that carries a piece of text and differs from the one before in nothing else. What
 * stands around the text is learned from a chunk that was parsed, and as long as it comes again to the letter, so does
 * the chunk's meaning, and only the text is read.
 */
export class TextChunk {
  #before = "";
  #after = "";
  #misses = 0;

  /** The text of a chunk that is the usual one; undefined: it must be parsed. */
  textOf(data: string): string | undefined {
    const { length } = this.#before;
    const end = data.length - this.#after.length;
    if (length === 0 || end < length) return undefined;
    // Two slices compared cost a tenth of `startsWith` and `endsWith`.
    if (data.slice(end) !== this.#after || data.slice(0, length) !== this.#before) return undefined;
    const inner = data.slice(length, end);
    return special.test(inner) ? unescaped(inner) : inner;
  }

  /** Learns from a chunk that was parsed. */
  learn(data: string, chunk: Readonly<Record<string, unknown>>): void {
    if (this.#misses > mostMisses) return;
    this.#misses += 1;
    this.#before = "";
    const content = plainContent(chunk);
    if (content === undefined || content === "" || special.test(content)) return;
    const at = data.indexOf(opening);
    if (at < 0 || data.indexOf(opening, at + 1) >= 0) return;
    const from = data.indexOf('"', at + opening.length);
    if (from < 0 || data.slice(at + opening.length, from).trim() !== ":" || !data.startsWith(content, from + 1)) return;
    const to = from + 1 + content.length;
    if (data.charCodeAt(to) !== 34) return;
    this.#before = data.slice(0, from + 1);
    this.#after = data.slice(to);
  }

  /** The stream is as it was learned. */
  noteHit(): void {
    this.#misses = 0;
  }
}

const opening = '"content"';
/** What JSON writes otherwise than as it is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
const special = /["\\\u0000-\u001f]/;

/** A text with escapes; undefined when it ends before its end, so that the chunk is another one. */
function unescaped(inner: string): string | undefined {
  try {
    const text: unknown = JSON.parse(`"${inner}"`);
    return typeof text === "string" ? text : undefined;
  } catch {
    // Quotes of its own: more than one text stands there.
    return undefined;
  }
}

/** The text of a chunk of the first candidate that carries nothing else. */
function plainContent(chunk: Readonly<Record<string, unknown>>): string | undefined {
  const { choices, usage, timings } = chunk;
  const [choice, ...others] = listOf(choices);
  if (!isLoose(choice) || others.length > 0 || isLoose(usage) || isLoose(timings)) return undefined;
  const { index, delta, finish_reason: finish, logprobs } = choice;
  if ((index ?? 0) !== 0 || finish != null || logprobs != null || !isLoose(delta)) return undefined;
  const { content, role: _role, ...rest } = delta;
  if (typeof content !== "string" || Object.values(rest).some((value) => value != null)) return undefined;
  return content;
}
