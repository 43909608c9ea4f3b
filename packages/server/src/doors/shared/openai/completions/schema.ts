import { z } from "zod";
import { list, tokenIds } from "../../bounded.ts";
import { extraShape, samplingShape } from "../sampling.ts";

/** What clients may send to text completions. Null is the same as absent; unknown members are kept, to be named. */
export const completionSchema = z.looseObject({
  ...samplingShape,
  ...extraShape,
  model: z.string().min(1),
  prompt: z.union(
    [z.string(), list(z.string(), { least: 1 }), tokenIds, list(tokenIds, { least: 1 })],
    "must be a text",
  ),
  logprobs: z.number().nullish(),
  max_tokens: z.number().nullish(),
  n: z.number().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  suffix: z.string().nullish(),
});

export type CompletionBody = z.output<typeof completionSchema>;
