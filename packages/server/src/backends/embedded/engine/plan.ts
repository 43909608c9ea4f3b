/** Milliseconds that one step may take: the longest that an abort or a neighbour's next token waits. */
export const stepTargetMs = 70;

const smallestBudgetTokens = 4;

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
  rate: ReadingRate,
): number[] {
  const target = Math.floor(rate.tokensPerMs * stepTargetMs) - decoding;
  let left = Math.min(batchTokens - decoding, Math.max(smallestBudgetTokens, target));
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
