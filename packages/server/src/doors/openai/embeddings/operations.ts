import { closedSignal } from "../../shared/closed-signal.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { toEmbeddingRequest } from "../../shared/openai/embeddings/request.ts";
import { toEmbeddingList } from "../../shared/openai/embeddings/response.ts";
import { embeddingSchema } from "../../shared/openai/embeddings/schema.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { answerJson } from "../../shared/run-response.ts";
import { headersOf } from "../headers.ts";

export const embeddingOperations: readonly Operation[] = [
  { name: "embeddings.create", method: "POST", path: "/v1/embeddings", scope: "infer", handle: createEmbeddings },
];

async function createEmbeddings(call: Call): Promise<void> {
  const { core, caller, responder } = call;
  const headers = readRequestHeaders(call.request.headers, core.clock.now());
  const { request, isBase64, withoutEffect } = toEmbeddingRequest(call.json(embeddingSchema), headers);
  const result = await core.embeddings.create(request, caller, "openai", closedSignal(responder));
  answerJson(call, 200, toEmbeddingList(result, isBase64), headersOf(undefined, withoutEffect));
}
