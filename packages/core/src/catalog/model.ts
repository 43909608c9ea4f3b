/** A model as the catalog shows it (LMSP §4). What is not known is absent, never guessed. */

export interface Capabilities {
  readonly chat: boolean;
  readonly completion: boolean;
  readonly embeddings: boolean;
  readonly tools: boolean;
  readonly structuredOutput: boolean;
  readonly reasoning: boolean;
  readonly vision: boolean;
  readonly logprobs: boolean;
  /** Fill in the middle: a completion with a suffix. */
  readonly insert: boolean;
}

export type Capability = keyof Capabilities;

/** Every capability. */
export const capabilityNames = [
  "chat",
  "completion",
  "embeddings",
  "tools",
  "structuredOutput",
  "reasoning",
  "vision",
  "logprobs",
  "insert",
] as const satisfies readonly Capability[];

/** `available`: can be loaded on demand; `unavailable`: its runtime is down or its file unusable. */
export type ModelState = "available" | "loading" | "loaded" | "unavailable";

/** What becomes of a request field on this model. */
export type ParameterEffect = "honoured" | "emulated" | "refused" | "without_effect";

export interface ModelLimits {
  /** Tokens of prompt and answer together, for each response. */
  readonly contextTokens?: number;
  readonly outputTokens?: number;
  readonly embeddingDimensions?: number;
  /** Responses that run at once; more wait in the queue. */
  readonly parallel: number;
}

export interface ModelDetails {
  readonly family?: string;
  readonly parameters?: number;
  readonly quantization?: string;
  readonly format?: string;
  readonly sizeBytes?: number;
  /** `sha256:<hex>` of the weights file. */
  readonly digest?: string;
  /** Chat template of the model, as its file or runtime gives it. */
  readonly chatTemplate?: string;
  /** Tokens that the model was trained on at once. */
  readonly trainedContextTokens?: number;
  /** Key and value pairs of the weights file's header, without long arrays. */
  readonly metadata?: Readonly<Record<string, string | number | boolean>>;
}

/** A model as one backend serves it. */
export interface BackendModel {
  /** Name that the backend itself uses. */
  readonly name: string;
  readonly title: string;
  readonly aliases: readonly string[];
  readonly state: ModelState;
  /** Why it is `unavailable`, as a sentence that says what to do. */
  readonly stateDetail?: string;
  readonly capabilities: Capabilities;
  readonly emulated: readonly Capability[];
  readonly limits: ModelLimits;
  readonly details: ModelDetails;
  readonly parameters: Readonly<Record<string, ParameterEffect>>;
  /** Ids of the LMSP services through which it is reached, nearest first. Absent: none. */
  readonly via?: readonly string[];
  /** Bytes that it takes now; absent when not loaded or not known. */
  readonly memoryBytes?: number;
  /** Milliseconds since the epoch when an idle model is unloaded; absent: never, or not loaded. */
  readonly expiresAtMs?: number;
  readonly createdAtMs: number;
}

export interface ModelRuntime {
  /** Backend's id. */
  readonly id: string;
  readonly kind: string;
  readonly model: string;
  readonly state: ModelState;
  readonly memoryBytes?: number;
  /** As in `BackendModel`. */
  readonly via?: readonly string[];
}

export interface CatalogModel extends Omit<BackendModel, "name" | "via"> {
  readonly id: string;
  readonly runtimes: readonly ModelRuntime[];
}
