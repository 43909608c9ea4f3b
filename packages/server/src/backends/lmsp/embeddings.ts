import { type BackendEmbedding, CoreError, type EmbeddingRequest } from "@plenum/core";
import { openaiBody } from "../shared/openai/body-dialect.ts";
import { embedBodies } from "../shared/openai/embedding-answer.ts";
import type { Upstream } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { kind, type LmspSettings } from "./options.ts";
import { timeLeftMs } from "./request.ts";
import { viaOf } from "./respond.ts";

export interface EmbedOptions {
  readonly upstream: Upstream;
  readonly settings: LmspSettings;
  /** Absent: the service has no OpenAI interface. */
  readonly path: string | undefined;
  readonly request: EmbeddingRequest;
  readonly signal: AbortSignal;
}

/** Vectors of length 1 for every input, in order, by the service's OpenAI interface. @throws CoreError; the signal's reason */
export function embedAt({ upstream, settings, path, request, signal }: EmbedOptions): Promise<BackendEmbedding> {
  const { model, priority, deadlineMs, via } = request;
  if (path === undefined) {
    const detail = "The runtime has no OpenAI interface, which embeddings need.";
    throw new CoreError("unsupported-capability", detail, { model, capability: "embeddings" });
  }
  const headers = {
    ...settings.authorization,
    ...viaOf(settings, via),
    ...(priority === 0 ? {} : { "x-lmsp-priority": String(priority) }),
  };
  return embedBodies(request, kind, openaiBody, async (body) => {
    const timeout = deadlineMs === undefined ? {} : { "x-lmsp-timeout-ms": String(timeLeftMs(deadlineMs, Date.now())) };
    const call = { method: "POST", path, body, headers: { ...headers, ...timeout }, signal } as const;
    const answer = await upstream.json(call);
    if (answer.status !== 200) throw upstreamError(answer, { model });
    return answer.body;
  });
}
