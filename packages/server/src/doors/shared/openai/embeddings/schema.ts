import { z } from "zod";
import { list, tokenIds } from "../../bounded.ts";
import { extraShape } from "../sampling.ts";

const text = z.string().min(1, "must not be empty");

/** What clients may send to embeddings. Null is the same as absent; unknown members are kept, to be named. */
export const embeddingSchema = z.looseObject({
  model: z.string().min(1),
  input: z.union(
    [text, list(text, { least: 1 }), tokenIds, list(tokenIds, { least: 1 })],
    "must be a text, token ids, or a list of one of them, and not empty",
  ),
  dimensions: z.number().nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  keep_alive: extraShape.keep_alive,
});

export type EmbeddingBody = z.output<typeof embeddingSchema>;
