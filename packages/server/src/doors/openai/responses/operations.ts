import { CoreError, type ResponseRecord } from "@plenum/core";
import type { Call, Operation } from "../../shared/door.ts";
import { resolveReferences } from "../../shared/openai/responses/references.ts";
import { toResponsesRequest } from "../../shared/openai/responses/request.ts";
import { toResponseObject } from "../../shared/openai/responses/response.ts";
import { responsesSchema } from "../../shared/openai/responses/schema.ts";
import { ResponsesStream } from "../../shared/openai/responses/stream.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { answerJson } from "../../shared/run-response.ts";
import { toWireError } from "../errors.ts";
import { headersOf } from "../headers.ts";
import { runConverted } from "../run.ts";
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
  const { request } = converted;
  await runConverted(call, converted, {
    endsWithDone: false,
    toSource: (parts) => new ResponsesStream({ ...parts, request }),
    toBody: (response) => toResponseObject(response, request, toWireError),
  });
}

async function getResponse(call: Call): Promise<void> {
  if (call.request.query.get("stream") === "true") {
    throw new CoreError(
      "invalid-request",
      "Only a background response can be streamed again; read it without stream.",
      {
        param: "stream",
      },
    );
  }
  answerRecord(call, await findResponse(call));
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

function answerRecord(call: Call, { response, request }: ResponseRecord): void {
  answerJson(call, 200, toResponseObject(response, request, toWireError), headersOf(response.id, []));
}
