import type { PromptPiece } from "../chat-format/index.ts";
import type { PromptSource } from "../messages.ts";
import { EngineError } from "./engine-error.ts";
import type { SpecialToken } from "./vocabulary.ts";

/** What the tokeniser of a model offers; `Vocabulary` and the addon's model are the real ones. */
export interface Tokenizer {
  /** Tokens of plain text: names of control tokens in it stay text. */
  tokenize(text: string): ArrayLike<number>;
  readonly special: readonly SpecialToken[];
  readonly first: number | undefined;
  readonly last: number | undefined;
  readonly infill: { readonly prefix: number; readonly suffix: number; readonly middle: number } | undefined;
}

/** A control token, or text between control tokens. */
export type PromptSegment = number | string;

/** Far too long a text is measured by its first characters only. */
const sampleCharacters = 65_536;
/** Characters that one token stands for at most, when a text is cut to so many tokens. */
const charactersPerToken = 64;

/**
 * Takes a prompt apart at the control tokens that its template wrote. Text of the template and of the client between
 * two of them is joined, so that it is tokenised exactly as llama.cpp tokenises the whole prompt, while a control
 * token's name in a client's text stays text.
 */
export function segmentPrompt(pieces: readonly PromptPiece[], special: readonly SpecialToken[]): PromptSegment[] {
  const byText = new Map(special.map((token) => [token.text, token]));
  const names = [...byText.keys()].sort((a, b) => b.length - a.length).map(escapeForPattern);
  const pattern = names.length > 0 ? new RegExp(names.join("|"), "g") : undefined;
  const segments: PromptSegment[] = [];
  let text = "";
  let stripNext = false;
  const add = (more: string) => {
    text += stripNext ? more.trimStart() : more;
    if (more !== "") stripNext = false;
  };
  for (const piece of pieces) {
    let from = 0;
    for (const match of piece.parseSpecial && pattern !== undefined ? piece.text.matchAll(pattern) : []) {
      const token = byText.get(match[0]);
      if (token === undefined) continue;
      add(piece.text.slice(from, match.index));
      from = match.index + match[0].length;
      const before = token.stripsBefore ? text.trimEnd() : text;
      if (before !== "") segments.push(before);
      segments.push(token.id);
      text = "";
      stripNext = token.stripsAfter;
    }
    add(piece.text.slice(from));
  }
  if (text !== "") segments.push(text);
  return segments;
}

/**
 * Tokens of a prompt, the first one of every sequence included where the model wants one.
 * @param limitTokens tokens that a sequence holds
 * @throws EngineError empty-prompt, no-infill, context-length (for a text so long that it is only estimated)
 */
export function promptTokens(prompt: PromptSource, tokenizer: Tokenizer, limitTokens: number): number[] {
  const tokens = flatten(segmentsOf(prompt, tokenizer), tokenizer, limitTokens);
  if (tokens.length === 0) throw new EngineError("empty-prompt", "The prompt is empty.");
  if (tokenizer.first !== undefined && tokens[0] !== tokenizer.first) tokens.unshift(tokenizer.first);
  return tokens;
}

/**
 * Tokens of one text to embed, with those that the model wants around it; an empty text has only these.
 * @param truncate true: the text may be cut beyond `limitTokens`; false: a hopelessly long one throws context-length
 */
export function embeddingTokens(
  input: string | readonly number[],
  tokenizer: Tokenizer,
  limitTokens: number,
  truncate: boolean,
): { readonly head: readonly number[]; readonly body: readonly number[]; readonly tail: readonly number[] } {
  const cut = (text: string) => (truncate ? text.slice(0, charactersPerToken * limitTokens) : text);
  const body =
    typeof input === "string" ? flatten([cut(input)], tokenizer, truncate ? Infinity : limitTokens) : [...input];
  const { first, last } = tokenizer;
  return {
    head: first === undefined || body[0] === first ? [] : [first],
    body,
    tail: last === undefined || (body.length > 1 && body.at(-1) === last) ? [] : [last],
  };
}

function segmentsOf(prompt: PromptSource, tokenizer: Tokenizer): PromptSegment[] {
  if (prompt.kind === "pieces") return segmentPrompt(prompt.pieces, tokenizer.special);
  const { infill } = tokenizer;
  if (infill === undefined) throw new EngineError("no-infill", "The model has no tokens for filling in the middle.");
  return [infill.prefix, prompt.prefix, infill.suffix, prompt.suffix, infill.middle];
}

function flatten(segments: readonly PromptSegment[], tokenizer: Tokenizer, limitTokens: number): number[] {
  const tokens: number[] = [];
  for (const segment of segments) {
    if (typeof segment === "number") {
      tokens.push(segment);
      continue;
    }
    refuseHopeless(segment, tokenizer, limitTokens);
    const found = tokenizer.tokenize(segment);
    for (let index = 0; index < found.length; index++) tokens.push(found[index] ?? 0);
  }
  return tokens;
}

/** Tokenising megabytes would stop every neighbour for seconds: far beyond the limit, a sample tells enough. */
function refuseHopeless(text: string, tokenizer: Tokenizer, limitTokens: number): void {
  if (text.length < 8 * limitTokens || text.length < 4 * sampleCharacters) return;
  const sample = tokenizer.tokenize(text.slice(0, sampleCharacters)).length;
  const estimate = Math.round((sample / sampleCharacters) * text.length);
  if (estimate < 2 * limitTokens) return;
  throw new EngineError("context-length", `The prompt has about ${estimate} tokens.`, {
    limit: limitTokens,
    requested: estimate,
  });
}

function escapeForPattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
