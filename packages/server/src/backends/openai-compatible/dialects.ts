import { type BodyDialect, openaiBody, openaiSampling } from "../shared/openai/body-dialect.ts";

/** What one kind of OpenAI-style server takes and how it spells it. Data only: the code knows no vendor. */
export interface Dialect extends BodyDialect {
  /** Closing the connection stops an answer that was asked for in one piece, too; false: only streams are asked for. */
  readonly stopsWhole: boolean;
  /** Paths beside `/v1/models` that tell more. */
  readonly probes: readonly Probe[];
  /** Responses at once where the server does not tell. */
  readonly parallel: number;
  /** How a person starts it, for the catalog. */
  readonly startHint: string;
}

/** `embeddings`: a body without input tells whether the route is there, and costs nothing. */
export type Probe = "props" | "embeddings" | "lm-studio";

const generic: Dialect = {
  ...openaiBody,
  stopsWhole: true,
  probes: [],
  parallel: 8,
  startHint: "start it, or correct its baseUrl",
};

const llamaServer: Dialect = {
  ...generic,
  sampling: {
    ...openaiSampling,
    topK: "top_k",
    minP: "min_p",
    typicalP: "typical_p",
    repeatPenalty: "repeat_penalty",
    repeatLastN: "repeat_last_n",
  },
  reasoningEffort: ["reasoning_effort", "enable_thinking"],
  pastReasoning: "reasoning_content",
  tellsParallelCalls: true,
  // 2 ** 32 - 1 itself draws a seed.
  seedLimit: 2 ** 32 - 1,
  probes: ["props", "embeddings"],
  parallel: 1,
  startHint: "start llama-server, or correct its baseUrl",
};

const vllm: Dialect = {
  ...generic,
  sampling: { ...openaiSampling, topK: "top_k", minP: "min_p", repeatPenalty: "repetition_penalty" },
  reasoningEffort: ["reasoning_effort", "enable_thinking"],
  pastReasoning: "reasoning",
  strictForcedCalls: true,
  priority: true,
  truncatesEmbeddings: ["truncate_prompt_tokens", -1],
  probes: ["embeddings"],
  parallel: 64,
  startHint: "start vLLM, or correct its baseUrl",
};

/** By kind. A kind that is not here is read as `openai-compatible`. */
export const dialects = {
  "openai-compatible": generic,
  "llama-server": llamaServer,
  vllm,
  sglang: { ...vllm, strictForcedCalls: false, priority: false, pastReasoning: "reasoning_content" },
  "lm-studio": {
    ...generic,
    sampling: { ...openaiSampling, topK: "top_k", repeatPenalty: "repeat_penalty" },
    logprobs: false,
    // It takes no call by name.
    forcesCalls: false,
    candidates: false,
    jsonObject: false,
    base64Embeddings: false,
    probes: ["lm-studio"],
    parallel: 4,
    startHint: "start LM Studio's server, or correct its baseUrl",
  },
  jan: { ...llamaServer, probes: [], startHint: "start Jan's local API server, or correct its baseUrl" },
  openai: { ...generic, maxTokens: "max_completion_tokens", stopsWhole: false, parallel: 16 },
  litellm: { ...generic, stopsWhole: false, parallel: 16 },
} as const satisfies Readonly<Record<string, Dialect>>;

const byKind = new Map<string, Dialect>(Object.entries(dialects));

export function dialectOf(kind: string): Dialect {
  return byKind.get(kind) ?? generic;
}
