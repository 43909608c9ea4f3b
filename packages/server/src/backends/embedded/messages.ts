/**
 * What the service and one engine child say to each other over Node's IPC channel (structured clone).
 * All events of one step travel in one `events` message.
 */
import type { TokenLogprob } from "@plenum/core";
import type { PromptPiece } from "./chat-format/index.ts";
import type { GpuBuild } from "./gpu/builds.ts";

/** What a child needs to know before it loads its model. */
export interface EngineConfig {
  readonly modelPath: string;
  readonly use: "text" | "embedding";
  /** Tokens of prompt and answer together, for each sequence. */
  readonly contextTokens: number;
  /** Sequences that run at once. */
  readonly parallel: number;
  /** Absent: as many as the engine thinks useful for this processor. */
  readonly threads?: number;
  /** Entries of the vocabulary, from the file's header. */
  readonly vocabularySize: number;
  /** Build that the child is started with. Absent: the library's own, on the processor. */
  readonly gpu?: GpuBuild;
}

/** Text to read before the answer begins. */
export type PromptSource =
  | { readonly kind: "pieces"; readonly pieces: readonly PromptPiece[] }
  | { readonly kind: "infill"; readonly prefix: string; readonly suffix: string };

/** Sampling with every default filled in. */
export interface SamplingSettings {
  readonly temperature: number;
  /** 0: all. */
  readonly topK: number;
  /** 1: all. */
  readonly topP: number;
  /** 0: all. */
  readonly minP: number;
  /** 32 bits; candidate n takes the n-th next one. */
  readonly seed: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** 1: none. */
  readonly repeatPenalty: number;
  /** Tokens; 0: none, -1: the whole context. */
  readonly repeatLastN: number;
  /** Token id and bias; -100 or less bars the token. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
}

export interface GenerateMessage {
  readonly type: "generate";
  readonly id: number;
  readonly prompt: PromptSource;
  readonly candidates: number;
  /** Upper bound of tokens for each candidate; absent: until the context is full. */
  readonly maxTokens?: number;
  readonly sampling: SamplingSettings;
  readonly stop: readonly string[];
  /** Control tokens that are part of the answer's text; the others are silent. */
  readonly visibleTokens: readonly string[];
  /** GBNF with the root rule `root`. */
  readonly grammar?: string;
  /** Most likely tokens listed for each token; absent: no log probabilities. */
  readonly logprobs?: number;
}

export interface EmbedMessage {
  readonly type: "embed";
  readonly id: number;
  readonly inputs: readonly (string | readonly number[])[];
  readonly truncate: boolean;
  /** Length of the vectors wanted; absent: the model's own. */
  readonly dimensions?: number;
}

/** Service to child. */
export type ServiceMessage =
  | { readonly type: "start"; readonly config: EngineConfig }
  | GenerateMessage
  | EmbedMessage
  | { readonly type: "abort"; readonly id: number }
  | { readonly type: "exit" };

/** What the service must know of a loaded model. */
export interface EngineReady {
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** Texts of the control tokens. */
  readonly controlTokens: readonly string[];
  /** True: the model has the tokens for filling in the middle. */
  readonly canInsert: boolean;
  readonly rssBytes: number;
}

/** Why a request, or the load, came to nothing; `errors.ts` makes CoreErrors of it. */
export interface EngineFailure {
  readonly kind:
    | "aborted"
    | "context-length"
    | "empty-prompt"
    | "bad-grammar"
    | "bad-bias"
    | "bad-token"
    | "bad-dimensions"
    | "no-infill"
    | "model-file"
    | "memory"
    | "engine";
  readonly message: string;
  /** Tokens, or vector length. */
  readonly limit?: number;
  readonly requested?: number;
}

/** Why one candidate ended; the runtime's own words. */
export type EndReason = "eos" | "length" | "stop_string";

export interface CandidateUsage {
  readonly inputTokens: number;
  /** Prompt tokens that were still in the cache. */
  readonly cachedTokens: number;
  /** Tokens sampled, an end token included (as llama-server, Ollama and vLLM count). */
  readonly outputTokens: number;
  readonly promptMs: number;
  readonly generationMs: number;
}

export type EngineEvent =
  | { readonly type: "accepted"; readonly id: number; readonly inputTokens: number }
  | { readonly type: "prompt"; readonly id: number; readonly doneTokens: number; readonly totalTokens: number }
  | {
      readonly type: "text";
      readonly id: number;
      readonly candidate: number;
      readonly text: string;
      /** Tokens sampled since this candidate's last `text`. */
      readonly tokens: number;
      readonly logprobs?: readonly TokenLogprob[];
    }
  | {
      readonly type: "done";
      readonly id: number;
      readonly candidate: number;
      readonly reason: EndReason;
      readonly usage: CandidateUsage;
    }
  | {
      readonly type: "embedded";
      readonly id: number;
      readonly vectors: readonly Float32Array[];
      readonly inputTokens: number;
    }
  /** Ends the request with all its candidates; none of them holds a sequence any more. */
  | { readonly type: "failed"; readonly id: number; readonly failure: EngineFailure };

/** Child to service. */
export type EngineMessage =
  | ({ readonly type: "ready" } & EngineReady)
  | { readonly type: "load-failed"; readonly failure: EngineFailure }
  | { readonly type: "events"; readonly events: readonly EngineEvent[] }
  | { readonly type: "memory"; readonly rssBytes: number };
