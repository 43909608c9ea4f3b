import { CoreError, type ResponseRecord } from "@plenum/core";
import { createBackground } from "../../shared/create-background.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { inWordsOf } from "../../shared/openai/converted.ts";
import { resolveReferences } from "../../shared/openai/responses/references.ts";
import { toResponsesRequest } from "../../shared/openai/responses/request.ts";
import { toResponseObject } from "../../shared/openai/responses/response.ts";
import { responsesSchema } from "../../shared/openai/responses/schema.ts";
import { ResponsesStream, type StreamPlace } from "../../shared/openai/responses/stream.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { answerJson } from "../../shared/run-response.ts";
import { streamResponse } from "../../shared/stream-response.ts";
import { toWireError } from "../errors.ts";
import { headersOf } from "../headers.ts";
import { runConverted } from "../run.ts";
import { sseRenderer } from "../stream.ts";
import { findResponse } from "./find-response.ts";
import { listInputItems } from "./input-items.ts";

const root = "/v1/responses";

export const responsesOperations: readonly Operation[] = [
  { name: "responses.create", method: "POST", path: root, scope: "infer", handle: createResponse },
  {
    name: "responses.input_items.list",
    method: "GET",
    path: `${root}/*/input_items`,
    scope: "read",
    handle: listInputItems,
  },
  { name: "responses.cancel", method: "POST", path: `${root}/*/cancel`, scope: "infer", handle: cancelResponse },
  { name: "responses.retrieve", method: "GET", path: `${root}/*`, scope: "read", handle: getResponse },
  { name: "responses.delete", method: "DELETE", path: `${root}/*`, scope: "infer", handle: deleteResponse },
];

async function createResponse(call: Call): Promise<void> {
  const headers = readRequestHeaders(call.request.headers, call.core.clock.now());
  const { responses } = call.core;
  const body = call.json(responsesSchema);
  const input = await resolveReferences(
    body.input,
    async (id) => (await responses.get(id, call.caller.principal)).response,
  );
  const converted = toResponsesRequest({ ...body, input }, headers);
  const { request, isStream } = converted;
  if (request.background && !isStream) {
    const { answered, record } = await inWordsOf(converted, () => createBackground(call, "openai", request, 0));
    answerRecord(call, record, [...converted.withoutEffect, ...answered.withoutEffect.map(converted.param)]);
    return;
  }
  await runConverted(call, converted, {
    endsWithDone: false,
    toSource: (parts) => new ResponsesStream({ ...parts, request }),
    toBody: (response) => toResponseObject(response, request, toWireError),
  });
}

async function getResponse(call: Call): Promise<void> {
  const record = await findResponse(call);
  if (call.request.query.get("stream") === "true") await streamAgain(call, record);
  else answerRecord(call, record);
}

/** The stream of a background response once more, with the numbers that it had, from the place that is asked for. */
async function streamAgain(call: Call, { request, response }: ResponseRecord): Promise<void> {
  const { core, caller, responder } = call;
  if (!request.background) {
    const detail = "Only a background response can be streamed again; read it without stream.";
    throw new CoreError("invalid-request", detail, { param: "stream" });
  }
  const after = startingAfter(call);
  const from: StreamPlace = after === undefined ? { attempt: response.attempt } : { after };
  // From its first event on: what an event is depends on those before it.
  const reader = await core.responses.events(response.id, 0, caller.principal);
  if (reader === undefined) throw new CoreError("events-expired", "The events are no longer kept.");
  await streamResponse({
    reader,
    renderer: sseRenderer(new ResponsesStream({ request, toWireError, param: (path) => path, from }), {
      headers: headersOf(response.id, []),
      endsWithDone: false,
    }),
    responder,
    clock: core.clock,
    headersAfterMs: 0,
    // Its headers have left: a problem is told in the stream.
    refuse: () => {},
  });
}

/** @throws CoreError invalid-request */
function startingAfter({ request }: Call): number | undefined {
  const text = request.query.get("starting_after");
  if (text === null || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CoreError("invalid-request", "'starting_after' must be the number of an event.", {
    param: "starting_after",
  });
}

async function cancelResponse(call: Call): Promise<void> {
  const { response } = await findResponse(call);
  await call.core.responses.cancel(response.id, call.caller.principal);
  answerRecord(call, await findResponse(call));
}

async function deleteResponse(call: Call): Promise<void> {
  const { response } = await findResponse(call);
  await call.core.responses.delete(response.id, call.caller.principal);
  answerJson(call, 200, { id: response.id, object: "response", deleted: true });
}

function answerRecord(call: Call, { response, request }: ResponseRecord, withoutEffect: readonly string[] = []): void {
  answerJson(call, 200, toResponseObject(response, request, toWireError), headersOf(response.id, withoutEffect));
}
