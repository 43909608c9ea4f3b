import { type BackendEmbedding, CoreError, type EmbeddingRequest } from "@plenum/core";
import type { BodyDialect } from "./body-dialect.ts";
import type { Body } from "./chat-body.ts";
import { countOf, isLoose, listOf } from "./loose.ts";

type Input = EmbeddingRequest["inputs"][number];
type Embedding = Omit<BackendEmbedding, "loadMs">;

/**
 * Vectors of length 1 for every input, in order.
 * @param call asks for one body, which holds texts or token lists, not both.
 * @throws CoreError backend-error, invalid-request; what `call` throws
 */
export async function embedBodies(
  request: EmbeddingRequest,
  kind: string,
  dialect: BodyDialect,
  call: (body: Body) => Promise<unknown>,
): Promise<BackendEmbedding> {
  const vectors: Float32Array[] = [];
  let inputTokens = 0;
  for (const inputs of runsOfOneType(request.inputs)) {
    const part = { ...request, inputs };
    const answer = readEmbedding(await call(embeddingBody(part, kind, dialect)), part);
    vectors.push(...answer.vectors);
    inputTokens += answer.inputTokens;
  }
  return { vectors, inputTokens, loadMs: 0 };
}

function embeddingBody(request: EmbeddingRequest, kind: string, dialect: BodyDialect): Body {
  const { model, inputs, truncate, runtimeOptions } = request;
  const cut = dialect.truncatesEmbeddings;
  return {
    ...runtimeOptions[kind],
    model,
    input: inputs,
    encoding_format: dialect.base64Embeddings ? "base64" : "float",
    ...(truncate && cut !== undefined ? { [cut[0]]: cut[1] } : {}),
  };
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

function readEmbedding(body: unknown, { model, inputs, dimensions }: EmbeddingRequest): Embedding {
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
