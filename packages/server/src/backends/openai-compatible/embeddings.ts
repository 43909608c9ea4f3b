import { type BackendEmbedding, CoreError, type EmbeddingRequest } from "@plenum/core";
import type { Upstream } from "../shared/upstream.ts";
import { isErrorBody, streamedError, upstreamError } from "../shared/upstream-errors.ts";
import type { Dialect } from "./dialects.ts";
import { countOf, isLoose, listOf } from "./loose.ts";

type Input = EmbeddingRequest["inputs"][number];

/** Vectors of length 1 for every input, in order. @throws CoreError; the signal's reason */
export async function embedAt(
  upstream: Upstream,
  request: EmbeddingRequest,
  kind: string,
  dialect: Dialect,
  signal: AbortSignal,
): Promise<BackendEmbedding> {
  const vectors: Float32Array[] = [];
  let inputTokens = 0;
  // A body holds texts or token lists, not both.
  for (const inputs of runsOfOneType(request.inputs)) {
    const part = await call(upstream, { ...request, inputs }, kind, dialect, signal);
    vectors.push(...part.vectors);
    inputTokens += part.inputTokens;
  }
  return { vectors, inputTokens, loadMs: 0 };
}

function runsOfOneType(inputs: readonly Input[]): readonly (readonly Input[])[] {
  const runs: Input[][] = [];
  for (const input of inputs) {
    const last = runs.at(-1);
    if (last !== undefined && typeof last[0] === typeof input) last.push(input);
    else runs.push([input]);
  }
  return runs;
}

async function call(
  upstream: Upstream,
  request: EmbeddingRequest,
  kind: string,
  dialect: Dialect,
  signal: AbortSignal,
): Promise<Omit<BackendEmbedding, "loadMs">> {
  const { model, inputs, truncate, runtimeOptions } = request;
  const cut = dialect.truncatesEmbeddings;
  const body = {
    ...runtimeOptions[kind],
    model,
    input: inputs,
    encoding_format: dialect.base64Embeddings ? "base64" : "float",
    ...(truncate && cut !== undefined ? { [cut[0]]: cut[1] } : {}),
  };
  const answer = await upstream.json({ method: "POST", path: "/v1/embeddings", body, signal });
  if (answer.status !== 200) throw upstreamError(answer, { model });
  if (isLoose(answer.body) && isErrorBody(answer.body)) throw streamedError(answer.body, { model });
  return read(answer.body, request);
}

function read(body: unknown, { model, inputs, dimensions }: EmbeddingRequest): Omit<BackendEmbedding, "loadMs"> {
  const { data, usage } = isLoose(body) ? body : {};
  const vectors: (Float32Array | undefined)[] = inputs.map(() => undefined);
  for (const [place, entry] of listOf(data).entries()) {
    if (!isLoose(entry)) continue;
    const index = countOf(entry["index"]) ?? place;
    const vector = vectorOf(entry["embedding"]);
    if (vector?.every(Number.isFinite) && index < vectors.length) vectors[index] = shortened(vector, dimensions, model);
  }
  const whole = vectors.filter((vector) => vector !== undefined);
  if (whole.length !== inputs.length) {
    throw new CoreError("backend-error", "The runtime did not answer with a vector for each input.", { model });
  }
  const { prompt_tokens, total_tokens } = isLoose(usage) ? usage : {};
  return { vectors: whole, inputTokens: countOf(prompt_tokens) ?? countOf(total_tokens) ?? 0 };
}

/** A vector as numbers, or as base64 of little-endian 32-bit floats. */
function vectorOf(embedding: unknown): Float32Array | undefined {
  if (Array.isArray(embedding)) {
    const isVector = embedding.length > 0 && embedding.every((value) => typeof value === "number");
    return isVector ? Float32Array.from(embedding) : undefined;
  }
  if (typeof embedding !== "string") return undefined;
  const bytes = Buffer.from(embedding, "base64");
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  return Float32Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

/** Cut to the dimensions that were asked for, with length 1. A vector of zeros stays one. */
function shortened(vector: Float32Array, dimensions: number | undefined, model: string): Float32Array {
  if (dimensions !== undefined && dimensions > vector.length) {
    const detail = `${model} has vectors of ${vector.length} dimensions; ask for at most that many.`;
    const numbers = { limit: vector.length, requested: dimensions };
    throw new CoreError("invalid-request", detail, { param: "dimensions", model, ...numbers });
  }
  const kept = dimensions === undefined ? vector : vector.slice(0, dimensions);
  const length = Math.sqrt(kept.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? kept : kept.map((value) => value / length);
}
