/**
 * Milliseconds that a step may take while an answer streams or a request waits for a sequence: the longest that the next
 * token, or an abort, waits.
 */
export const streamingStepMs = 80;
/** The same while all that run still read their prompts and nobody waits: nothing stands still, so steps may be larger. */
const readingStepMs = 250;

const smallestBudgetTokens = 4;
/**
 * llama.cpp's flash attention reads this many tokens of a sequence in one go; fewer are attended to one after the other,
 * which late in a prompt takes twice as long.
 */
export const tileTokens = 64;
/** The longest step of whole tiles. A machine that takes longer for one tile reads what it can in `readingStepMs`. */
const longestTileMs = 1_000;
/** Part of the time that prompts take to read for which their first step may wait for others that come at once. */
const gatheringShare = 0.03;
const longestGatheringMs = 30;

/** What a step has to do, and what it stands in the way of. */
export interface StepLoad {
  /** Sequences that take one token each. */
  readonly decoding: number;
  /** True: requests wait for a sequence. */
  readonly areOthersWaiting: boolean;
  /** Most tokens in one step. */
  readonly batchTokens: number;
}

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

/** Reading rates by the number of threads: when it changes, the next step is of the right size at once. */
export class ReadingRates {
  readonly #byThreads = new Map<number, ReadingRate>();
  #threads: number;
  #current = new ReadingRate();

  constructor(threads: number) {
    this.#threads = threads;
    this.#byThreads.set(threads, this.#current);
  }

  get current(): ReadingRate {
    return this.#current;
  }

  /** A number that is new begins at its part of the present rate, and at no more than it. */
  use(threads: number): void {
    const guess = this.#current.tokensPerMs * Math.min(1, threads / this.#threads);
    this.#current = this.#byThreads.get(threads) ?? new ReadingRate(guess);
    this.#byThreads.set(threads, this.#current);
    this.#threads = threads;
  }
}

/**
 * Milliseconds that an idle engine waits for more requests before it reads these. A request that comes a moment later
 * would be read beside the first one's stream, in small steps; read together, all begin to stream together.
 * @param tokens to read so far
 */
export function gatheringMs(tokens: number, { tokensPerMs }: ReadingRate): number {
  return Math.min(longestGatheringMs, (tokens / tokensPerMs) * gatheringShare);
}

/**
 * Shares one step among the prompts that are being read. Every decoding sequence takes its one token first; the rest
 * goes to prompts evenly, shortest rest first, so that a short prompt does not wait behind a long one.
 * @param remaining tokens still to read, one entry a prompt
 * @returns tokens to read now, in the order of `remaining`; at least one prompt gets some
 */
export function sharePrompts(
  remaining: readonly number[],
  { decoding, areOthersWaiting, batchTokens }: StepLoad,
  { tokensPerMs }: ReadingRate,
): number[] {
  const isShort = decoding > 0 || areOthersWaiting;
  let left = Math.min(
    batchTokens - decoding,
    isShort ? Math.floor(tokensPerMs * streamingStepMs) - decoding : readingBudget(remaining, tokensPerMs),
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
  const isRestSmall = others.length === 0 && only - tiles < tileTokens && only <= tokensPerMs * longestTileMs;
  return isRestSmall ? Math.max(tiles, only) : tiles;
}
