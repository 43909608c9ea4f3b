import { type FieldTable, honoured, refused, withoutEffect } from "../fields.ts";
import { extraFields } from "../sampling.ts";

/** What becomes of each field of `POST /v1/responses`. */
export const responsesFields = {
  background: { effect: "honoured", note: "needs `store`" },
  context_management: refused("ask for `truncation` instead"),
  conversation: refused("send `previous_response_id`"),
  include: { effect: "honoured", note: "`message.output_text.logprobs`; the others are without effect" },
  input: {
    effect: "honoured",
    note: "messages, functions' calls and outputs, reasoning, references to output kept here; other items are refused",
  },
  instructions: honoured,
  max_output_tokens: { effect: "honoured", note: "an upper bound" },
  metadata: honoured,
  model: honoured,
  moderation: refused("nothing is moderated here"),
  parallel_tool_calls: honoured,
  previous_response_id: honoured,
  prompt: refused("prompts are not kept here; send `instructions` and `input`"),
  prompt_cache_key: withoutEffect,
  prompt_cache_options: withoutEffect,
  prompt_cache_retention: withoutEffect,
  reasoning: {
    effect: "honoured",
    note: "`effort`; `summary`, `generate_summary`, `context` and `mode` are without effect",
  },
  safety_identifier: withoutEffect,
  service_tier: withoutEffect,
  store: { effect: "honoured", note: "true when absent" },
  stream: honoured,
  stream_options: withoutEffect,
  temperature: honoured,
  text: { effect: "honoured", note: "`format`; `verbosity` is refused unless `medium`" },
  tool_choice: {
    effect: "honoured",
    note: "`auto`, `none`, `required`, a function; `allowed_tools` and hosted tools are refused",
  },
  tools: {
    effect: "honoured",
    note: "functions; hosted, custom and namespace tools are without effect, and so is `auto` on a model that can't call tools",
  },
  top_logprobs: honoured,
  top_p: honoured,
  truncation: { effect: "honoured", note: "`auto` leaves out the oldest items" },
  user: withoutEffect,
} as const satisfies FieldTable;

/** Fields that chat has and this API leaves out; taken here too. */
export const responsesExtraFields = {
  ...extraFields,
  seed: honoured,
  stop: honoured,
  presence_penalty: honoured,
  frequency_penalty: honoured,
  logit_bias: honoured,
} as const satisfies FieldTable;

export const responsesTable: FieldTable = { ...responsesFields, ...responsesExtraFields };
