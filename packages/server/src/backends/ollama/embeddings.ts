import { CoreError } from "@plenum/core";
import { listOf, numberOf } from "./json-fields.ts";

/** Vectors of an `/api/embed` answer; Ollama has normalised them. @throws CoreError backend-error for any other answer */
export function toVectors(body: unknown, count: number): { vectors: readonly Float32Array[]; inputTokens: number } {
  const vectors = listOf(body, "embeddings").map(toVector);
  if (vectors.length !== count || vectors.some((vector) => vector.length === 0 || !vector.every(Number.isFinite))) {
    throw new CoreError("backend-error", `Ollama was asked for ${count} vectors and gave something else.`);
  }
  return { vectors, inputTokens: numberOf(body, "prompt_eval_count") ?? 0 };
}

/** Empty: it is no list of numbers. */
function toVector(written: unknown): Float32Array {
  const isVector = Array.isArray(written) && written.every((value) => typeof value === "number");
  return Float32Array.from(isVector ? written : []);
}
