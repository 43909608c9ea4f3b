import { type FieldTable, honoured, refused, withoutEffect } from "../fields.ts";
import { verbosity } from "../reasoning.ts";
import { extraFields } from "../sampling.ts";

const asksForText = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((item) => item === "text");

/** What becomes of each field of `POST /v1/chat/completions`. */
export const chatFields = {
  messages: honoured,
  model: honoured,
  audio: refused("answers are text"),
  frequency_penalty: honoured,
  function_call: refused("it is deprecated; send `tool_choice`"),
  functions: refused("it is deprecated; send `tools`"),
  logit_bias: honoured,
  logprobs: honoured,
  max_completion_tokens: { effect: "honoured", note: "an upper bound; wins over `max_tokens`" },
  max_tokens: { effect: "honoured", note: "an upper bound" },
  metadata: honoured,
  modalities: refused('answers are text; `["text"]` is taken', asksForText),
  moderation: refused("nothing is moderated here"),
  n: { effect: "honoured", note: "1 to 8" },
  parallel_tool_calls: honoured,
  prediction: withoutEffect,
  presence_penalty: honoured,
  prompt_cache_key: withoutEffect,
  prompt_cache_options: withoutEffect,
  prompt_cache_retention: withoutEffect,
  reasoning_effort: { effect: "honoured", note: "`xhigh` and `max` as `high`" },
  response_format: honoured,
  safety_identifier: withoutEffect,
  seed: honoured,
  service_tier: withoutEffect,
  stop: { effect: "honoured", note: "up to 16 texts" },
  store: withoutEffect,
  stream: honoured,
  stream_options: {
    effect: "honoured",
    note: "`include_usage`; without effect: `include_obfuscation`, or no `stream`",
  },
  temperature: honoured,
  tool_choice: {
    effect: "honoured",
    note: "`auto`, `none`, `required`, a function; `allowed_tools` and custom tools are refused",
  },
  tools: {
    effect: "honoured",
    note: "functions; custom tools are refused; without effect under `auto` on a model that can't call tools",
  },
  top_logprobs: { effect: "honoured", note: "needs `logprobs`" },
  top_p: honoured,
  user: withoutEffect,
  verbosity,
  web_search_options: refused("nothing here searches the web"),
} as const satisfies FieldTable;

export const chatTable: FieldTable = { ...chatFields, ...extraFields };
