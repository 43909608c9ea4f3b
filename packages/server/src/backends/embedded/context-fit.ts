/** llama.cpp rounds contexts to this many tokens. */
const stepTokens = 256;
/** Context of a model whose file does not say what it was trained on. */
const unknownContextTokens = 4096;
/** Compute buffers and the process itself, beside weights and cache. */
const overheadBytes = 256 * 1024 * 1024;

export interface FitOptions {
  /** Tokens that the model was trained on at once; undefined: not known. */
  readonly trainedContextTokens: number | undefined;
  /** Asked for by the configuration; undefined: as trained. */
  readonly wantedContextTokens: number | undefined;
  readonly cacheBytesPerToken: number;
  readonly parallel: number;
  readonly weightsBytes: number;
  /** Bytes that the model may take in all. */
  readonly budgetBytes: number;
}

/**
 * Context of each of `parallel` sequences: as trained or as asked for, lowered in steps of 256 until weights, cache and
 * overhead fit the budget. At least 256; whether even that fits is `neededBytes`' question.
 */
export function fitContext(options: FitOptions): number {
  const { trainedContextTokens: trained, wantedContextTokens: wanted } = options;
  const upper = Math.min(wanted ?? Number.POSITIVE_INFINITY, trained ?? wanted ?? unknownContextTokens);
  const perToken = options.cacheBytesPerToken * options.parallel;
  if (perToken === 0) return upper;
  const room = Math.floor((options.budgetBytes - options.weightsBytes - overheadBytes) / perToken);
  if (room >= upper) return upper;
  return Math.min(upper, Math.max(stepTokens, Math.floor(room / stepTokens) * stepTokens));
}

/** Bytes that a model takes once it is loaded, by estimate. */
export function neededBytes(options: {
  readonly contextTokens: number;
  readonly cacheBytesPerToken: number;
  readonly parallel: number;
  readonly weightsBytes: number;
}): number {
  const cacheBytes = options.contextTokens * options.parallel * options.cacheBytesPerToken;
  return options.weightsBytes + cacheBytes + overheadBytes;
}
