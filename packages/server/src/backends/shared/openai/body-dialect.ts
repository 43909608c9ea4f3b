import type { Sampling } from "@plenum/core";

/** What a service over OpenAI's bodies takes, and how it spells it. Data only: the code knows no vendor. */
export interface BodyDialect {
  /** Sampling fields that it takes, in its spelling; fields that are absent here are refused by name. */
  readonly sampling: Readonly<Partial<Record<Exclude<keyof Sampling, "logprobs">, string>>>;
  readonly logprobs: boolean;
  readonly maxTokens: "max_tokens" | "max_completion_tokens";
  /** Several answers of one request (`n`). */
  readonly candidates: boolean;
  /** `false`: `json_object` is refused, so JSON without a schema is asked for with the schema of any object. */
  readonly jsonObject: boolean;
  /** How thinking is turned down: `reasoning_effort`, the template's `enable_thinking`, or both. */
  readonly reasoningEffort: readonly ("reasoning_effort" | "enable_thinking")[];
  /** Field of an assistant's turn that carries what it thought; absent: thoughts of the past are not sent. */
  readonly pastReasoning?: string;
  /** Whether usage of a stream has to be asked for. */
  readonly asksForUsage: boolean;
  /** Says `parallel_tool_calls` always, since its default is false. */
  readonly tellsParallelCalls: boolean;
  /** Takes a `tool_choice` that forces a call; `false`: such calls are asked for by a schema of the answer. */
  readonly forcesCalls: boolean;
  /** Forced calls hold their schema only with `strict`. */
  readonly strictForcedCalls: boolean;
  /** Takes `priority`, lower first. */
  readonly priority: boolean;
  /** Field that cuts a text that is too long to embed, with its value. */
  readonly truncatesEmbeddings?: readonly [field: string, value: unknown];
  readonly base64Embeddings: boolean;
  /** Seeds at or above this are wrapped; absent: any whole number. */
  readonly seedLimit?: number;
}

/** Sampling fields of OpenAI's own API. */
export const openaiSampling = {
  temperature: "temperature",
  topP: "top_p",
  seed: "seed",
  stop: "stop",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias",
} as const;

/** OpenAI's own bodies, as most take them. */
export const openaiBody: BodyDialect = {
  sampling: openaiSampling,
  logprobs: true,
  maxTokens: "max_tokens",
  candidates: true,
  jsonObject: true,
  reasoningEffort: ["reasoning_effort"],
  asksForUsage: true,
  tellsParallelCalls: false,
  forcesCalls: true,
  strictForcedCalls: false,
  priority: false,
  base64Embeddings: true,
};
