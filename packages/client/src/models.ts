/** Every list of LMSP. */
export interface Page<Item> {
  readonly data: readonly Item[];
  /** Pass as `cursor` to get what follows; null: this was the last page. */
  readonly next_cursor: string | null;
}

export type LmspModelState = "available" | "loading" | "loaded" | "unavailable";

/** What a model can do. A capability that is absent is not known to exist. */
export interface LmspCapabilities {
  readonly chat?: boolean;
  readonly completion?: boolean;
  readonly embeddings?: boolean;
  readonly tools?: boolean;
  readonly structured_output?: boolean;
  readonly reasoning?: boolean;
  readonly vision?: boolean;
  readonly logprobs?: boolean;
  /** Fill in the middle. */
  readonly insert?: boolean;
}

/** A model of the catalog (LMSP §4). What is not known is absent. */
export interface LmspModel {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly state: LmspModelState;
  /** Why it is `unavailable`. */
  readonly state_detail?: string;
  readonly capabilities: LmspCapabilities;
  /** Capabilities that the service adds by prompting or grammar. */
  readonly emulated: readonly string[];
  readonly limits: {
    /** Tokens of prompt and answer together. */
    readonly context_tokens?: number | null;
    readonly output_tokens?: number | null;
    readonly embedding_dimensions?: number | null;
    /** Responses that run at once. */
    readonly parallel?: number | null;
  };
  readonly details: {
    readonly family?: string;
    readonly parameters?: number;
    readonly quantization?: string;
    readonly format?: string;
    readonly size_bytes?: number;
    /** `sha256:<hex>` of the weights file. */
    readonly digest?: string;
  };
  /** What becomes of each request field. */
  readonly parameters?: Readonly<Record<string, "honoured" | "emulated" | "refused" | "without_effect">>;
  readonly runtimes: readonly {
    readonly id: string;
    readonly kind: string;
    readonly state: string;
    readonly model?: string;
    readonly loaded?: boolean;
    readonly memory_bytes?: number;
  }[];
  /** RFC 3339. */
  readonly created_at?: string;
}
