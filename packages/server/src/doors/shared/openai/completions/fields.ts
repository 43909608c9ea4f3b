import { type FieldTable, honoured, refused, withoutEffect } from "../fields.ts";
import { extraFields } from "../sampling.ts";

/** What becomes of each field of `POST /v1/completions`. */
export const completionFields = {
  model: honoured,
  prompt: { effect: "honoured", note: "one text; lists of more and token ids are refused" },
  best_of: refused("send `n`; 1 is taken", (value) => value === 1),
  echo: refused("put the prompt before the answer yourself", (value) => value === false),
  frequency_penalty: honoured,
  logit_bias: honoured,
  logprobs: honoured,
  max_tokens: { effect: "honoured", note: "16 when absent" },
  n: { effect: "honoured", note: "1 to 8" },
  presence_penalty: honoured,
  seed: honoured,
  stop: { effect: "honoured", note: "up to 16 texts" },
  stream: honoured,
  stream_options: {
    effect: "honoured",
    note: "`include_usage`; without effect: `include_obfuscation`, or no `stream`",
  },
  suffix: honoured,
  temperature: honoured,
  top_p: honoured,
  user: withoutEffect,
} as const satisfies FieldTable;

export const completionTable: FieldTable = { ...completionFields, ...extraFields };
