import type { BackendEmbedding, EmbeddingRequest } from "@plenum/core";
import { embedBodies } from "../shared/openai/embedding-answer.ts";
import { isLoose } from "../shared/openai/loose.ts";
import { traceHeaders } from "../shared/trace-headers.ts";
import type { Upstream } from "../shared/upstream.ts";
import { isErrorBody, streamedError, upstreamError } from "../shared/upstream-errors.ts";
import type { Dialect } from "./dialects.ts";

/** Vectors of length 1 for every input, in order. @throws CoreError; the signal's reason */
export function embedAt(
  upstream: Upstream,
  request: EmbeddingRequest,
  kind: string,
  dialect: Dialect,
  signal: AbortSignal,
): Promise<BackendEmbedding> {
  const { model } = request;
  return embedBodies(request, kind, dialect, async (body) => {
    const answer = await upstream.json({
      method: "POST",
      path: "/v1/embeddings",
      body,
      ...traceHeaders(request),
      signal,
    });
    if (answer.status !== 200) throw upstreamError(answer, { model });
    if (isLoose(answer.body) && isErrorBody(answer.body)) throw streamedError(answer.body, { model });
    return answer.body;
  });
}
