import type { BackendEmbedding, EmbeddingRequest } from "@plenum/core";
import { openaiBody } from "../shared/openai/body-dialect.ts";
import { embedBodies } from "../shared/openai/embedding-answer.ts";
import { endProblem } from "./errors.ts";
import type { Link } from "./link.ts";
import { kind } from "./options.ts";
import { urgencyOptions } from "./request.ts";

/** Vectors of length 1 for every input, in order. @throws CoreError; the signal's reason */
export function embedAt(link: Link, request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
  const context = { model: request.model, hasDeadline: request.deadlineMs !== undefined };
  return embedBodies(request, kind, openaiBody, async (body) => {
    const place = await link.take(signal);
    try {
      const call = place.client.call("embeddings.create", body, { ...urgencyOptions(request, Date.now()), signal });
      for await (const _event of call);
      await call.operation?.ended;
      signal.throwIfAborted();
      const { end } = call;
      if (end?.event.type === "response.completed") return end.event.body;
      if (end !== undefined) throw endProblem(call, end, context);
      return undefined;
    } finally {
      place.release();
    }
  });
}
