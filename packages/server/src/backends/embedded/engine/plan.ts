/**
 * Milliseconds that a step may take while an answer streams, a request waits for a sequence, or a prompt has not been
 * read for long: the longest that the next token, an abort or a new request waits, since nothing ends a pass from
 * outside.
 */
export const stepMs = 60;
/** The same while several prompts are read and nobody streams: larger steps read a little faster. */
const togetherStepMs = 250;
/** Part of the time that a lone prompt has been read for which one step of whole tiles may take. */
const shareOfReading = 0.1;

/**
 * The longest pass of one token with which a lone prompt is read in short steps. With a larger model most of a short step
 * would go into reading the weights once more.
 */
const longestPassMs = stepMs / 2;

const smallestBudgetTokens = 4;
/**
 * llama.cpp's flash attention reads this many tokens of a sequence in one go; fewer are attended to one after the other,
 * which late in a prompt takes twice as long.
 */
const tileTokens = 64;
/** The longest tile that a prompt's first steps may read. */
const longestTileMs = 1_000;
/** Tokens of a prompt over which reading does not slow down much. */
const stretchTokens = 256;
/** Part of the time that prompts take to read for which their first step may wait for others that come at once. */
const gatheringShare = 0.03;
const longestGatheringMs = 30;

/** A prompt that is being read. */
export interface Reading {
  readonly doneTokens: number;
  /** Tokens still to read. */
  readonly remainingTokens: number;
  /** Since its first step. */
  readonly readingMs: number;
}

/** What a step has to do beside reading, and what it stands in the way of. */
export interface StepLoad {
  /** Sequences that take one token each. */
  readonly decoding: number;
  /** True: requests wait for a sequence. */
  readonly areOthersWaiting: boolean;
  /** Most tokens in one step. */
  readonly batchTokens: number;
  /** Milliseconds that a pass of one token takes. */
  readonly passMs: number;
}

export interface ReadingPlan {
  /** Tokens to read now, in the order of the prompts. */
  readonly slices: readonly number[];
  /** Learns from the step how fast it was. */
  readonly rate: ReadingRate;
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

/** Rates of short steps by how far a prompt has been read, and of whole tiles. */
class RatesOfThreads {
  readonly #byStretch: ReadingRate[];
  #tiles: ReadingRate | undefined;

  constructor(tokensPerMs?: number) {
    this.#byStretch = [new ReadingRate(tokensPerMs)];
  }

  /** A stretch that is new begins at the rate of the one before. */
  at(doneTokens: number): ReadingRate {
    const stretch = Math.floor(doneTokens / stretchTokens);
    let rate = this.#byStretch[0] ?? new ReadingRate();
    for (let at = 0; at <= stretch; at++) {
      const known = this.#byStretch[at] ?? new ReadingRate(rate.tokensPerMs);
      this.#byStretch[at] = known;
      rate = known;
    }
    return rate;
  }

  /** Begins at the rate of a prompt's first steps, which attend to little. */
  get tiles(): ReadingRate {
    this.#tiles ??= new ReadingRate(this.at(0).tokensPerMs);
    return this.#tiles;
  }
}

/** Reading rates by the number of threads: when it changes, the next step is of the right size at once. */
export class ReadingRates {
  readonly #byThreads = new Map<number, RatesOfThreads>();
  #threads: number;
  #current = new RatesOfThreads();

  constructor(threads: number) {
    this.#threads = threads;
    this.#byThreads.set(threads, this.#current);
  }

  /** Of short steps, for a prompt that has been read so far. */
  at(doneTokens: number): ReadingRate {
    return this.#current.at(doneTokens);
  }

  get tiles(): ReadingRate {
    return this.#current.tiles;
  }

  /** A number that is new begins at its part of the present rate, and at no more than it. */
  use(threads: number): void {
    const guess = this.at(0).tokensPerMs * Math.min(1, threads / this.#threads);
    this.#current = this.#byThreads.get(threads) ?? new RatesOfThreads(guess);
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

/** How much of each prompt the next step reads: at least one gets some. Every decoding sequence takes its token first. */
export function planReading(prompts: readonly Reading[], load: StepLoad, rates: ReadingRates): ReadingPlan {
  const { decoding, areOthersWaiting, batchTokens } = load;
  const isInTheWay = decoding > 0 || areOthersWaiting;
  const [only] = prompts;
  if (only !== undefined && prompts.length === 1 && !isInTheWay) {
    const tokens = Math.min(batchTokens, wholeTiles(only, rates, load.passMs <= longestPassMs));
    if (tokens > 0) return { slices: [tokens], rate: rates.tiles };
  }
  const rate = rates.at(Math.max(0, ...prompts.map(({ doneTokens }) => doneTokens)));
  const ms = prompts.length > 1 && !isInTheWay ? togetherStepMs : stepMs;
  const tokens = Math.min(batchTokens, Math.floor(rate.tokensPerMs * ms)) - decoding;
  const remaining = prompts.map(({ remainingTokens }) => remainingTokens);
  return { slices: shareTokens(Math.max(smallestBudgetTokens, tokens), remaining), rate };
}

/**
 * Tokens of a lone prompt for one step of whole tiles; a rest that would fill no tile goes with the last one.
 * @returns 0: a short step is to read it
 */
function wholeTiles(
  { remainingTokens, readingMs }: Reading,
  { tiles: { tokensPerMs } }: ReadingRates,
  isShortWorth: boolean,
): number {
  const allowedMs = Math.max(stepMs, readingMs * shareOfReading);
  const tokens = Math.floor(tokensPerMs * allowedMs);
  const isAllowed = tokens >= tileTokens;
  if (!isAllowed && (isShortWorth || tileTokens > tokensPerMs * longestTileMs)) return 0;
  const tiles = Math.max(tileTokens, tokens - (tokens % tileTokens));
  const isRestSmall = remainingTokens - tiles < tileTokens && remainingTokens <= tokensPerMs * longestTileMs;
  return isRestSmall ? remainingTokens : Math.min(remainingTokens, tiles);
}

/**
 * Shares tokens among prompts evenly, shortest rest first, so that a short prompt does not wait behind a long one.
 * Equally many for each, since llama.cpp makes a pass of its own for each number of tokens that sequences have in a batch.
 * @returns tokens to read now, in the order of `remaining`
 */
function shareTokens(tokens: number, remaining: readonly number[]): number[] {
  let left = tokens;
  const slices = remaining.map(() => 0);
  const shortestFirst = remaining.map((rest, index) => ({ rest, index })).sort((a, b) => a.rest - b.rest);
  // Grows by what shorter prompts leave, not by what division leaves over.
  let share = 0;
  let isFinal = false;
  shortestFirst.forEach(({ rest, index }, place) => {
    if (!isFinal) share = Math.max(1, Math.floor(left / (shortestFirst.length - place)));
    isFinal = rest >= share;
    const slice = Math.min(left, rest, share);
    slices[index] = slice;
    left -= slice;
  });
  return slices;
}
