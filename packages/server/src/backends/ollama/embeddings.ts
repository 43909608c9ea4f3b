import { CoreError } from "@plenum/core";
import { listOf, numberOf } from "./json-fields.ts";

/** Vectors of an `/api/embed` answer; Ollama has normalised them. @throws CoreError backend-error for any other answer */
export function toVectors(body: unknown, count: number): { vectors: readonly Float32Array[]; inputTokens: number } {
  const vectors = listOf(body, "embeddings").map((vector) =>
    Float32Array.from(Array.isArray(vector) ? vector : [Number.NaN]),
  );
  if (vectors.length !== count || vectors.some((vector) => vector.length === 0 || vector.some(Number.isNaN))) {
    throw new CoreError("backend-error", `Ollama was asked for ${count} vectors and gave something else.`);
  }
  return { vectors, inputTokens: numberOf(body, "prompt_eval_count") ?? 0 };
}
