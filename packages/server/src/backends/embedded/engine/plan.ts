/** Milliseconds that a step may take while an answer streams: the longest that its next token, or an abort, waits. */
export const streamingStepMs = 80;
/** The same while all that run still read their prompts: no stream stands still, so steps may be larger. */
export const readingStepMs = 250;

const smallestBudgetTokens = 4;
/**
 * llama.cpp's flash attention reads this many tokens of a sequence in one go; fewer are attended to one after the other,
 * which late in a prompt takes twice as long.
 */
export const tileTokens = 64;
/** A machine that takes longer for a tile reads what it can in `readingStepMs`. */
const longestTileMs = 1_000;

/** Tokens a millisecond that this machine reads now: a moving average, quick down and slow up. */
export class ReadingRate {
  #tokensPerMs: number;

  /** @param tokensPerMs first guess; low, so that the first steps are short. */
  constructor(tokensPerMs = 0.2) {
    this.#tokensPerMs = tokensPerMs;
  }

  get tokensPerMs(): number {
    return this.#tokensPerMs;
  }

  /** @param tokens read in `ms`; very small steps say nothing about prompts and are left out. */
  observe(tokens: number, ms: number): void {
    if (tokens < smallestBudgetTokens || ms <= 0) return;
    const seen = tokens / ms;
    this.#tokensPerMs += (seen - this.#tokensPerMs) * (seen < this.#tokensPerMs ? 0.5 : 0.15);
  }
}

/**
 * Shares one step among the prompts that are being read. Every decoding sequence takes its one token first; the rest
 * goes to prompts evenly, shortest rest first, so that a short prompt does not wait behind a long one.
 * @param remaining tokens still to read, one entry a prompt
 * @param decoding sequences that take one token each
 * @param batchTokens most tokens in one step
 * @returns tokens to read now, in the order of `remaining`; at least one prompt gets some
 */
export function sharePrompts(
  remaining: readonly number[],
  decoding: number,
  batchTokens: number,
  { tokensPerMs }: ReadingRate,
): number[] {
  let left = Math.min(
    batchTokens - decoding,
    decoding > 0 ? Math.floor(tokensPerMs * streamingStepMs) - decoding : readingBudget(remaining, tokensPerMs),
  );
  left = Math.max(smallestBudgetTokens, left);
  const slices = remaining.map(() => 0);
  const shortestFirst = remaining.map((tokens, index) => ({ tokens, index })).sort((a, b) => a.tokens - b.tokens);
  shortestFirst.forEach(({ tokens, index }, place) => {
    const share = Math.max(1, Math.floor(left / (shortestFirst.length - place)));
    const slice = Math.min(tokens, share, Math.max(0, left));
    slices[index] = slice;
    left -= slice;
  });
  return slices;
}

/** Whole tiles for a prompt that is read alone; a rest that would fill no tile goes with the last one. */
function readingBudget(remaining: readonly number[], tokensPerMs: number): number {
  const target = Math.floor(tokensPerMs * readingStepMs);
  if (tileTokens > tokensPerMs * longestTileMs) return target;
  const tiles = Math.max(tileTokens, target - (target % tileTokens));
  const [only = 0, ...others] = remaining;
  return others.length === 0 && only - tiles < tileTokens ? Math.max(tiles, only) : tiles;
}
