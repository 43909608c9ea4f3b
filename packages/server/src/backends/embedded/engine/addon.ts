/**
 * The native parts of node-llama-cpp that its public interface does not offer. They belong to the exact version that
 * package.json pins; `openAddon*` look for every method that is used and refuse in one sentence when one is missing.
 */
import type { LlamaModel } from "node-llama-cpp";

export interface SamplerConfig {
  temperature: number;
  seed?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  repeatPenaltyPresencePenalty?: number;
  repeatPenaltyFrequencyPenalty?: number;
  repeatPenaltyMaxTokens?: number;
  /** Must be there for penalties to work, if only empty. */
  repeatPenaltyTokens?: Uint32Array;
  tokenBiasKeys?: Uint32Array;
  tokenBiasValues?: Float32Array;
  grammarEvaluationState?: unknown;
}

export interface AddonSampler {
  applyConfig(config: SamplerConfig): void;
  dispose(): void;
}

/** Logits asked for beside a sampled token: these tokens, highest, lowest, the sampled one, the top n. */
type LogitFilter = [tokens: number[], highest: boolean, lowest: boolean, selected: boolean, top: number];

/** `logits` alternates token and logit; `weight` is the sum of exp(logit - highest logit). */
type SampleDetails = [
  token: number,
  probabilities: undefined,
  confidence: undefined,
  logits: number[] | undefined,
  weight: number | undefined,
];

export interface AddonContext {
  initBatch(tokens: number): void;
  addToBatch(sequence: number, firstPosition: number, tokens: Uint32Array, logitPositions: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  /** @returns -1 when nothing could be sampled. */
  sampleToken(index: number, sampler: AddonSampler): Promise<number>;
  sampleToken(
    index: number,
    sampler: AddonSampler,
    probabilities: false,
    confidence: false,
    logits: LogitFilter,
    weight: boolean,
  ): Promise<SampleDetails>;
  disposeSequence(sequence: number): void;
  /** @returns false where the model can't drop a part (recurrent, sliding window). */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>;
  /** First position that every layer's cache of a sequence still holds; -1 for an empty one. */
  getSequenceKvCacheMinPosition(sequence: number): number;
  getEmbedding(tokens: number): Float64Array;
  setThreads(threads: number): void;
}

export interface AddonModel {
  tokenize(text: string, parseSpecial: boolean): Uint32Array;
  getTokenString(token: number): string | undefined;
  getTokenAttributes(token: number): number;
  isEogToken(token: number): boolean;
}

interface AddonBindings {
  AddonSampler: new (model: AddonModel) => AddonSampler;
}

const contextMethods = [
  "initBatch",
  "addToBatch",
  "decodeBatch",
  "sampleToken",
  "disposeSequence",
  "removeTokenCellsFromSequence",
  "copySequenceStateFromOtherSequence",
  "getSequenceKvCacheMinPosition",
  "getEmbedding",
  "setThreads",
] as const satisfies readonly (keyof AddonContext)[];

const modelMethods = [
  "tokenize",
  "getTokenString",
  "getTokenAttributes",
  "isEogToken",
] as const satisfies readonly (keyof AddonModel)[];

/** @param owner a `LlamaContext`, or the one inside an embedding context */
export function openAddonContext(owner: object): AddonContext {
  const found: unknown = Reflect.get(owner, "_ctx");
  requireMethods(found, contextMethods, "context");
  return found as AddonContext;
}

export function openAddonModel(owner: LlamaModel): AddonModel {
  const found: unknown = Reflect.get(owner, "_model");
  requireMethods(found, modelMethods, "model");
  return found as AddonModel;
}

/** @returns a maker of samplers for this model. */
export function openSamplers(owner: LlamaModel, model: AddonModel): (config: SamplerConfig) => AddonSampler {
  const bindings: unknown = Reflect.get(owner.llama, "_bindings");
  requireMethods(bindings, ["AddonSampler"], "library");
  const { AddonSampler } = bindings as AddonBindings;
  return (config) => {
    const sampler = new AddonSampler(model);
    sampler.applyConfig(config);
    return sampler;
  };
}

/** The native state of a `LlamaGrammarEvaluationState`, as a sampler takes it. */
export function grammarState(owner: object): unknown {
  const state: unknown = Reflect.get(owner, "_state");
  if (state === undefined) throw new TypeError(lacks("grammar state", "_state"));
  return state;
}

function requireMethods(found: unknown, names: readonly string[], part: string): void {
  for (const name of names) {
    const isThere = typeof found === "object" && found !== null && typeof Reflect.get(found, name) === "function";
    if (!isThere) throw new TypeError(lacks(part, name));
  }
}

function lacks(part: string, name: string): string {
  return `This build of node-llama-cpp does not fit Plenum: its ${part} lacks ${name}. Install the version that package-lock.json names (npm ci).`;
}
