import { z } from "zod";
import { extraShape } from "../sampling.ts";

const tokens = z.array(z.int().min(0)).min(1, "must not be empty");
const text = z.string().min(1, "must not be empty");

/** What clients may send to embeddings. Null is the same as absent; unknown members are kept, to be named. */
export const embeddingSchema = z.looseObject({
  model: z.string().min(1),
  input: z.union(
    [text, z.array(text).min(1, "must not be empty"), tokens, z.array(tokens).min(1)],
    "must be a text, token ids, or a list of one of them, and not empty",
  ),
  dimensions: z.number().nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  keep_alive: extraShape.keep_alive,
});

export type EmbeddingBody = z.output<typeof embeddingSchema>;
