import type { EmbeddingRequest, EmbeddingResult } from "@plenum/core";
import { closedSignal } from "../shared/closed-signal.ts";
import type { Call } from "../shared/door.ts";
import { answerJson } from "../shared/run-response.ts";
import { headerFields, withoutEffectHeader } from "./answer.ts";
import { toKeepAliveMs } from "./keep-alive.ts";
import { toEmbeddingInputs, toEmbeddingRequest } from "./request.ts";
import { toWireEmbeddings } from "./response.ts";
import { changeState } from "./run.ts";
import { embeddingsSchema, embedSchema, nameOf, type WireEmbed } from "./schema.ts";
import { catalogName } from "./settle.ts";

/** `POST /api/embed` */
export async function embed(call: Call): Promise<void> {
  const wire = call.json(embedSchema);
  const made = await makeEmbeddings(call, wire);
  const model = nameOf(wire);
  const body = made === undefined ? { model, embeddings: [] } : toWireEmbeddings(model, made.result);
  answerJson(call, 200, body, withoutEffectHeader(made?.withoutEffect ?? []));
}

/** `POST /api/embeddings`, the older one: one text, one vector. */
export async function embedOne(call: Call): Promise<void> {
  const { prompt, ...wire } = call.json(embeddingsSchema);
  const made = await makeEmbeddings(call, { ...wire, input: prompt });
  const [vector = []] = made?.result.vectors ?? [];
  answerJson(call, 200, { embedding: [...vector] }, withoutEffectHeader(made?.withoutEffect ?? []));
}

interface Made {
  readonly result: EmbeddingResult;
  readonly withoutEffect: readonly string[];
}

/** @returns undefined without a text: then the model is only loaded. */
async function makeEmbeddings(call: Call, wire: WireEmbed): Promise<Made | undefined> {
  const { core, caller, responder } = call;
  const inputs = toEmbeddingInputs(wire.input);
  if (inputs.length === 0) {
    await changeState(call, nameOf(wire), toKeepAliveMs(wire.keep_alive));
    return undefined;
  }
  const { request, withoutEffect } = toEmbeddingRequest(wire, inputs, headerFields(call));
  const model = catalogName(core.catalog, request.model);
  const own = core.catalog.find(model)?.model.limits.embeddingDimensions;
  const fitting = fit({ ...request, model }, own);
  const result = await core.embeddings.create(fitting, caller, "ollama", closedSignal(responder));
  return {
    result,
    withoutEffect: fitting.dimensions === request.dimensions ? withoutEffect : [...withoutEffect, "dimensions"],
  };
}

/** As in Ollama: a vector that is shorter than the dimensions asked for stays as it is. */
function fit(request: EmbeddingRequest, own: number | undefined): EmbeddingRequest {
  const { dimensions, ...rest } = request;
  return dimensions !== undefined && own !== undefined && dimensions > own ? rest : request;
}
