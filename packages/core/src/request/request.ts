import type { ResponseInput } from "./items.ts";

/** JSON Schema as a client sent it. Checked by the backend that has to hold it. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

export interface FunctionTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments object; absent: any object. */
  readonly parameters?: JsonSchema;
  readonly strict?: boolean;
}

export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

export type OutputFormat =
  | { readonly type: "text" }
  | { readonly type: "json" }
  | { readonly type: "json_schema"; readonly name?: string; readonly schema: JsonSchema; readonly strict: boolean };

/** Sampling fields. Absent: the model's or runtime's own default. */
export interface Sampling {
  /** 0 … 2; 0 is greedy. */
  readonly temperature?: number;
  /** 0 … 1 */
  readonly topP?: number;
  /** Tokens kept; 0: all. */
  readonly topK?: number;
  /** 0 … 1 */
  readonly minP?: number;
  /** 0 … 1 */
  readonly typicalP?: number;
  /** Whole number; the same seed and request give the same text on one runtime. */
  readonly seed?: number;
  /** Texts that end the answer and are not part of it; at most 16, none empty. */
  readonly stop?: readonly string[];
  /** -2 … 2 */
  readonly presencePenalty?: number;
  /** -2 … 2 */
  readonly frequencyPenalty?: number;
  /** 1: none. */
  readonly repeatPenalty?: number;
  /** Tokens looked back at; 0: none, -1: the whole context. */
  readonly repeatLastN?: number;
  /** Token id to bias, -100 … 100; -100 bars the token. */
  readonly logitBias?: Readonly<Record<string, number>>;
  /** Most likely tokens listed for each token, 0 … 20. Absent: no log probabilities. */
  readonly logprobs?: number;
}

/** Whose work a request is part of, as W3C Trace Context has it: passed on to runtimes, never part of a body. */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>`, in its valid form. */
  readonly traceparent: string;
  readonly tracestate?: string;
}

export type DisconnectPolicy = "cancel" | "continue";

/** The core's own request: every door converts to it (LMSP §5). Equal explicit fields give an equal request. */
export interface ResponseRequest {
  readonly model: string;
  readonly input: ResponseInput;
  /** System text put before the input. */
  readonly instructions?: string;
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  readonly parallelToolCalls: boolean;
  readonly output: {
    readonly format: OutputFormat;
    /** Upper bound of output tokens for each candidate; absent: until the model ends or the context is full. */
    readonly maxTokens?: number;
  };
  readonly sampling: Sampling;
  /** What the door's API does with fields that the request leaves out, for runtimes without defaults of their own. */
  readonly samplingDefaults?: Sampling;
  readonly reasoning: { readonly effort?: "none" | "minimal" | "low" | "medium" | "high" };
  /** Answers wanted, 1 … 8. */
  readonly candidates: number;
  readonly previousResponseId?: string;
  readonly truncation: "none" | "oldest";
  /** Milliseconds that the model stays loaded after this; -1: for ever, 0: not at all; absent: the service's default. */
  readonly keepAliveMs?: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** True: kept for the retention, not only until shortly after its end. */
  readonly store: boolean;
  /** True: a task that outlives its connection and the process (LMSP §7); `store` is then true, too. */
  readonly background: boolean;
  /** -8 … 8, higher sooner. */
  readonly priority: number;
  /** Milliseconds since the epoch by which the response must have ended. */
  readonly deadlineMs?: number;
  /** Id of an own earlier response that this one takes the place of. */
  readonly supersedes?: string;
  readonly onDisconnect: DisconnectPolicy;
  /** Options for one kind of runtime each, passed on as they are. */
  readonly runtimeOptions: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Ids of the services that it came through, so that it is never sent back to one of them. Absent: none. */
  readonly via?: readonly string[];
  readonly trace?: TraceContext;
}

/** What may be changed of a response that is queued or runs. Absent: stays as it is. */
export interface ResponseChanges {
  /** -8 … 8, higher sooner; it counts while the response waits. */
  readonly priority?: number;
  /** Milliseconds since the epoch, in place of the deadline that it has. */
  readonly deadlineMs?: number;
  /**
   * Upper bound of output tokens for each candidate. A response that waits is asked for with it; one that runs ends when
   * as many pieces of output have come, and at the bound that its runtime was given before.
   */
  readonly maxTokens?: number;
}

/** What a door leaves out. */
export const requestDefaults = {
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: true,
  output: { format: { type: "text" } },
  sampling: {},
  reasoning: {},
  candidates: 1,
  truncation: "none",
  metadata: {},
  store: false,
  background: false,
  priority: 0,
  onDisconnect: "cancel",
  runtimeOptions: {},
} as const satisfies Omit<ResponseRequest, "model" | "input">;

/** Embeddings run beside responses: same admission, limits, cancel and metrics, no log (LMSP §5). */
export interface EmbeddingRequest {
  readonly model: string;
  /** At least one; each a text or its token ids. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Vector length wanted: the vector is cut and normalised again. Absent: the model's own. */
  readonly dimensions?: number;
  /** True: a text that is too long is cut at its end; false: it is refused. */
  readonly truncate: boolean;
  readonly keepAliveMs?: number;
  readonly priority: number;
  readonly deadlineMs?: number;
  readonly runtimeOptions: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** As in `ResponseRequest`. */
  readonly via?: readonly string[];
  readonly trace?: TraceContext;
}

export interface EmbeddingResult {
  /** One vector of length 1 for each input, in order. */
  readonly vectors: readonly Float32Array[];
  readonly inputTokens: number;
  readonly timings: { readonly queuedMs: number; readonly loadMs: number; readonly totalMs: number };
}
