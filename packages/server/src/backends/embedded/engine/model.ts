import {
  getLlama,
  InsufficientMemoryError,
  type Llama,
  LlamaGrammar,
  LlamaGrammarEvaluationState,
  LlamaLogLevel,
  type LlamaModel,
  NoBinaryFoundError,
} from "node-llama-cpp";
import type { EngineConfig } from "../messages.ts";
import {
  type AddonContext,
  type AddonModel,
  type AddonSampler,
  grammarState,
  openAddonContext,
  openAddonModel,
  openSamplers,
  type SamplerConfig,
} from "./addon.ts";
import { EngineError } from "./engine-error.ts";
import type { Tokenizer } from "./prompt-tokens.ts";
import { Vocabulary } from "./vocabulary.ts";

/** A model that is loaded and has its context. */
export interface LoadedModel {
  readonly config: EngineConfig;
  readonly context: AddonContext;
  readonly vocabulary: Vocabulary;
  readonly tokenizer: Tokenizer;
  /** Most tokens in one pass. */
  readonly batchTokens: number;
  /** Compute threads of a pass. */
  readonly threads: number;
  /** Tokens that some layers look back at most; 0: all layers see all. */
  readonly windowTokens: number;
  makeSampler(config: SamplerConfig): AddonSampler;
  /** State of a fresh grammar for one candidate. @throws EngineError bad-grammar */
  makeGrammar(gbnf: string): unknown;
  dispose(): Promise<void>;
}

const textBatchTokens = 512;

/** Loads the model of `config`. Never compiles or downloads an engine. @throws EngineError model-file, memory, engine */
export async function loadModel(config: EngineConfig): Promise<LoadedModel> {
  const llama = await openLibrary(config.threads);
  const model = await readModel(llama, config.modelPath);
  const addonModel = openAddonModel(model);
  const makeSampler = openSamplers(model, addonModel);
  const vocabulary = new Vocabulary(model, addonModel, config.vocabularySize);
  const batchTokens = config.use === "embedding" ? config.contextTokens : textBatchTokens;
  const threads = config.threads ?? llama.cpuMathCores;
  const context = await makeContext(model, config, batchTokens, threads);
  return {
    config,
    context,
    vocabulary,
    tokenizer: makeTokenizer(addonModel, vocabulary),
    batchTokens,
    threads,
    windowTokens: model.fileInsights.swaSize ?? 0,
    makeSampler,
    makeGrammar: (gbnf) => makeGrammar(llama, model, gbnf),
    dispose: async () => {
      await model.dispose();
      await llama.dispose();
    },
  };
}

async function openLibrary(threads: number | undefined): Promise<Llama> {
  try {
    return await getLlama({
      gpu: false,
      build: "never",
      skipDownload: true,
      progressLogs: false,
      // 0: no limit of the library's own, which would be at least 4 threads.
      maxThreads: threads ?? 0,
      logLevel: LlamaLogLevel.warn,
    });
  } catch (error) {
    if (!(error instanceof NoBinaryFoundError)) throw error;
    throw new EngineError(
      "engine",
      "No prebuilt engine fits this machine, and Plenum compiles none by itself; reinstall with `npm ci`, optional packages included.",
    );
  }
}

async function readModel(llama: Llama, modelPath: string): Promise<LlamaModel> {
  try {
    return await llama.loadModel({ modelPath, gpuLayers: 0 });
  } catch (error) {
    throw loadError(error, "model-file");
  }
}

async function makeContext(
  model: LlamaModel,
  config: EngineConfig,
  batchTokens: number,
  threads: number,
): Promise<AddonContext> {
  const { contextTokens, parallel } = config;
  try {
    if (config.use === "text") {
      const options = { sequences: parallel, contextSize: contextTokens, batchSize: batchTokens, threads };
      return openAddonContext(await model.createContext({ ...options, flashAttention: "auto" }));
    }
    const embedding = await model.createEmbeddingContext({
      contextSize: contextTokens,
      batchSize: batchTokens,
      threads,
    });
    const inner: unknown = Reflect.get(embedding, "_llamaContext");
    if (typeof inner !== "object" || inner === null) throw new TypeError("node-llama-cpp has no embedding context");
    return openAddonContext(inner);
  } catch (error) {
    throw loadError(error, "engine");
  }
}

function loadError(error: unknown, kind: "model-file" | "engine"): EngineError {
  const message = error instanceof Error ? error.message : String(error);
  return new EngineError(error instanceof InsufficientMemoryError ? "memory" : kind, message);
}

function makeTokenizer(model: AddonModel, vocabulary: Vocabulary): Tokenizer {
  const { special, first, last, infill } = vocabulary;
  return { tokenize: (text) => (text === "" ? [] : model.tokenize(text, false)), special, first, last, infill };
}

function makeGrammar(llama: Llama, model: LlamaModel, gbnf: string): unknown {
  try {
    const grammar = new LlamaGrammar(llama, { grammar: gbnf });
    return grammarState(new LlamaGrammarEvaluationState({ model, grammar }));
  } catch (error) {
    throw new EngineError("bad-grammar", error instanceof Error ? error.message : String(error));
  }
}
