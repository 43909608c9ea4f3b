import type { BackendEmbedding, EmbeddingRequest } from "@plenum/core";
import { callEngine } from "./engine-call.ts";
import { requestError } from "./errors.ts";
import type { EngineEvent } from "./messages.ts";
import type { RunningModel } from "./model-runner.ts";

/** Runs one embedding request on a loaded model. @throws CoreError; the signal's reason */
export async function embedOn(
  running: RunningModel,
  request: EmbeddingRequest,
  signal: AbortSignal,
): Promise<Omit<BackendEmbedding, "loadMs">> {
  let answer: Omit<BackendEmbedding, "loadMs"> | undefined;
  const onEvent = (event: EngineEvent): boolean => {
    if (event.type === "failed") throw requestError(event.failure, request.model, running.engine.log);
    if (event.type !== "embedded") return false;
    answer = { vectors: event.vectors, inputTokens: event.inputTokens };
    return true;
  };
  const { inputs, truncate, dimensions } = request;
  const wanted = { inputs, truncate, ...(dimensions === undefined ? {} : { dimensions }) };
  await callEngine({ engine: running.engine, message: (id) => ({ type: "embed", id, ...wanted }), onEvent, signal });
  if (answer === undefined) throw new TypeError("the embedding call ended without its vectors");
  return answer;
}
