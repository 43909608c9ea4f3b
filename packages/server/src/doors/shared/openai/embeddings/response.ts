import type { EmbeddingResult } from "@plenum/core";

/** Vectors as `list` of `embedding`. */
export function toEmbeddingList(
  { vectors, inputTokens, model }: EmbeddingResult & { readonly model: string },
  isBase64: boolean,
): Record<string, unknown> {
  return {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: isBase64 ? toBase64(vector) : Array.from(vector),
    })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  };
}

/** 32-bit floats, little-endian, as the official SDKs read them. */
function toBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
