import {
  type Caller,
  type CatalogModel,
  CoreError,
  isTerminal,
  requireScope,
  type Scope,
  usableModels,
  wireName,
} from "@plenum/core";
import { maxServices, type OperationName, responsesEvents } from "@plenum/profile";
import { z } from "zod";
import { toChatRequest } from "../shared/openai/chat/request.ts";
import { toChatCompletion } from "../shared/openai/chat/response.ts";
import { chatSchema } from "../shared/openai/chat/schema.ts";
import { ChatStream } from "../shared/openai/chat/stream.ts";
import { toEmbeddingRequest } from "../shared/openai/embeddings/request.ts";
import { toEmbeddingList } from "../shared/openai/embeddings/response.ts";
import { embeddingSchema } from "../shared/openai/embeddings/schema.ts";
import { refuse } from "../shared/openai/fields.ts";
import { toWireModel } from "../shared/openai/models/response.ts";
import { resolveReferences } from "../shared/openai/responses/references.ts";
import { toResponsesRequest } from "../shared/openai/responses/request.ts";
import { type RequestFacts, toResponseObject } from "../shared/openai/responses/response.ts";
import { responsesSchema } from "../shared/openai/responses/schema.ts";
import { ResponsesStream } from "../shared/openai/responses/stream.ts";
import { checkBody } from "../shared/parse-body.ts";
import { authenticate } from "./authenticate.ts";
import type { Call } from "./call.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { toWireError } from "./errors.ts";
import { LogPump } from "./log-pump.ts";
import type { Rendering } from "./rendering.ts";
import { createRenderer, endWith, runConverted } from "./run-response.ts";
import type { Ending } from "./stream.ts";

/** What a client can ask for. */
export interface Operation {
  readonly scope: Scope;
  handle(call: Call, caller: Caller): Promise<void> | void;
}

/** Every operation of the door, by its name on the wire. */
export const operations: Readonly<Record<OperationName | typeof responsesEvents, Operation>> = {
  "chat.completions.create": { scope: "infer", handle: createChat },
  "responses.create": { scope: "infer", handle: createResponse },
  "models.list": { scope: "read", handle: listModels },
  "embeddings.create": { scope: "infer", handle: createEmbeddings },
  [responsesEvents]: { scope: "read", handle: followResponse },
};

function isOperation(name: string): name is keyof typeof operations {
  return Object.hasOwn(operations, name);
}

/** Runs a call from its token to its end. Never rejects. */
export async function run(call: Call): Promise<void> {
  const { context, envelope, submitted } = call;
  try {
    if (!isOperation(envelope.operation)) {
      throw new CoreError("unsupported-operation", "This operation is not offered here.", { param: "operation" });
    }
    const { scope, handle } = operations[envelope.operation];
    const caller = authenticate(context.core, submitted.session, envelope.policy.authorization);
    requireScope(caller.principal, scope);
    const { trace } = call;
    const facts = { operation: envelope.operation, requestId: call.requestId };
    context.onRequest(trace === undefined ? facts : { ...facts, traceparent: trace.traceparent });
    call.watch((onEnd) => context.core.authenticator.watch(caller, onEnd));
    // Just after the start, the models may not be known yet.
    await context.core.catalog.ready;
    if (!call.isOver) await handle(call, caller);
  } catch (error) {
    call.fail(error);
  }
}

async function createChat(call: Call, caller: Caller): Promise<void> {
  const converted = toChatRequest(checkBody(call.envelope.body, chatSchema), call.fields);
  await runConverted(call, caller, converted, chatRendering(converted.includeUsage, converted.param));
}

async function createResponse(call: Call, caller: Caller): Promise<void> {
  const { responses } = call.context.core;
  const body = checkBody(call.envelope.body, responsesSchema);
  if (body.background) refuse("background", "an operation ends with its session; ask through HTTP");
  const find = async (id: string) => (await responses.get(id, caller.principal)).response;
  const input = await resolveReferences(body.input, find);
  const converted = toResponsesRequest({ ...body, input }, call.fields);
  await runConverted(call, caller, converted, responsesRendering(converted.request, converted.param));
}

function listModels(call: Call, { principal }: Caller): void {
  const { core, level, services } = call.context;
  const models = usableModels(core.catalog, principal);
  const document = capabilitiesOf(core, level, models);
  // Not in the document over HTTP, which strangers may read.
  const nnrp = services === undefined ? document : { ...document, services: services().slice(0, maxServices) };
  call.tell({});
  call.complete({ object: "list", data: models.map(toListedModel), nnrp });
}

/** An entry of the list, with what the model can do (LMSP §4) and its context, for services that use this one. */
function toListedModel(model: CatalogModel): object {
  const { contextTokens } = model.limits;
  const capabilities = Object.entries(model.capabilities).map(([name, can]) => [wireName(name), can]);
  return {
    ...toWireModel(model),
    capabilities: Object.fromEntries(capabilities),
    ...(contextTokens === undefined ? {} : { max_model_len: contextTokens }),
  };
}

async function createEmbeddings(call: Call, caller: Caller): Promise<void> {
  const { core } = call.context;
  const { request, isBase64 } = toEmbeddingRequest(checkBody(call.envelope.body, embeddingSchema), call.fields);
  const controller = new AbortController();
  call.onStop(({ kind }) => {
    // The core ends what runs by itself.
    if (kind !== "server-closing") controller.abort();
  });
  const result = await core.embeddings.create(request, caller, "nnrp", controller.signal);
  const { queuedMs } = result.timings;
  call.tell(queuedMs === undefined ? {} : { queueDelayMs: queuedMs });
  call.complete(toEmbeddingList(result, isBase64));
}

const eventsSchema = z.looseObject({ id: z.string().min(1), after: z.int().min(0).nullish() });

/** Sends the events of an earlier response again and follows it. Leaving it stops nothing but this. */
async function followResponse(call: Call, { principal }: Caller): Promise<void> {
  const { core, continued } = call.context;
  const { id, after } = checkBody(call.envelope.body, eventsSchema);
  const { response } = await core.responses.get(id, principal);
  const form = continued.get(response.id);
  if (form !== undefined) call.writeAgain(form.wantsChunks);
  const { rendering, isStream } = form ?? { rendering: chatRendering(false, (path) => path), isStream: true };
  const end = (ending: Ending): void => endWith(call, ending, rendering);
  // Of an answer in one piece only the end may be kept.
  const hasEvents = core.log.extent(response.id) !== undefined;
  const reader = hasEvents ? await core.responses.events(response.id, 0, principal) : undefined;
  if (reader === undefined) {
    if (!isTerminal(response)) throw new CoreError("events-expired", "The events are no longer kept.");
    end({ response });
    return;
  }
  const pump = new LogPump({
    call,
    reader,
    renderer: createRenderer(call, rendering, isStream),
    skip: after ?? 0,
    onEnd: end,
    onFault: (error) => call.fail(error),
  });
  call.onStop(() => pump.close());
  pump.begin();
}

function chatRendering(includeUsage: boolean, param: Rendering["param"]): Rendering {
  return {
    counts: "choices",
    param,
    toSource: () => new ChatStream({ includeUsage, toWireError, param }),
    toBody: toChatCompletion,
  };
}

function responsesRendering(request: RequestFacts, param: Rendering["param"]): Rendering {
  // Not the whole request, whose input may be large: the rendering may be kept.
  const { instructions, output, parallelToolCalls, reasoning, sampling, store, toolChoice, tools, truncation } =
    request;
  const shown = { output, parallelToolCalls, reasoning, sampling, store, toolChoice, tools, truncation };
  const facts: RequestFacts = instructions === undefined ? shown : { ...shown, instructions };
  return {
    counts: "output",
    param,
    toSource: () => new ResponsesStream({ request: facts, toWireError, param }),
    toBody: (response) => toResponseObject(response, facts, toWireError),
  };
}
