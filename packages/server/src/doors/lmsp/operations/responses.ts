import { CoreError, type DoorKind, type OwnedResponse, type ResponseQuery, type ResponseStatus } from "@plenum/core";
import { z } from "zod";
import { compact } from "../../shared/compact.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { toInvalidRequest } from "../../shared/parse-body.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { answerJson, completeForOwner, streamToOwner } from "../../shared/run-response.ts";
import { streamResponse } from "../../shared/stream-response.ts";
import { toChanges, toCoreRequest } from "../request.ts";
import { toWireResponse } from "../response.ts";
import { changesSchema, responseSchema, strictChangesSchema, strictResponseSchema } from "../schema.ts";
import { createRenderer } from "../stream.ts";
import { root } from "./root.ts";

/** Milliseconds after which a stream's headers leave even without an event (LMSP §6). */
const headersAfterMs = 1_000;

/** Responses and their events (LMSP §5, §6). */
export const responseOperations: readonly Operation[] = [
  { name: "responses.create", method: "POST", path: `${root}/responses`, scope: "infer", handle: createResponse },
  { name: "responses.list", method: "GET", path: `${root}/responses`, scope: "read", handle: listResponses },
  { name: "responses.events", method: "GET", path: `${root}/responses/*/events`, scope: "read", handle: readEvents },
  {
    name: "responses.cancel",
    method: "POST",
    path: `${root}/responses/*/cancel`,
    scope: "infer",
    handle: cancelResponse,
  },
  { name: "responses.get", method: "GET", path: `${root}/responses/*`, scope: "read", handle: getResponse },
  { name: "responses.change", method: "PATCH", path: `${root}/responses/*`, scope: "infer", handle: changeResponse },
  { name: "responses.delete", method: "DELETE", path: `${root}/responses/*`, scope: "infer", handle: deleteResponse },
];

/** RFC 7240. */
function isStrict({ request }: Call): boolean {
  return /\bhandling=strict\b/i.test(request.headers["prefer"] ?? "");
}

async function createResponse(call: Call): Promise<void> {
  const { request } = call;
  const wire = call.json(isStrict(call) ? strictResponseSchema : responseSchema);
  const isStream = wire.stream ?? /\btext\/event-stream\b/i.test(request.headers["accept"] ?? "");
  const nowMs = call.core.clock.now();
  const coreRequest = toCoreRequest(wire, nowMs, isStream, readRequestHeaders(request.headers, nowMs));
  const options = { call, door: "lmsp", request: coreRequest, headersAfterMs } as const;
  if (isStream) {
    await streamToOwner(options, (owned) => createRenderer(headersOf(owned)));
    return;
  }
  const completed = await completeForOwner(options);
  if (completed === undefined) return;
  const { owned, response } = completed;
  answerJson(call, 200, toWireResponse(response), headersOf(owned));
}

function headersOf({ id, withoutEffect }: OwnedResponse): Record<string, string> {
  return {
    "x-lmsp-response-id": id,
    location: `${root}/responses/${id}`,
    ...(withoutEffect.length === 0 ? {} : { "x-lmsp-without-effect": withoutEffect.join(", ") }),
  };
}

async function getResponse(call: Call): Promise<void> {
  const { response } = await call.core.responses.get(call.rest, call.caller.principal);
  answerJson(call, 200, toWireResponse(response));
}

async function cancelResponse(call: Call): Promise<void> {
  const response = await call.core.responses.cancel(call.rest, call.caller.principal);
  answerJson(call, 200, toWireResponse(response));
}

async function changeResponse(call: Call): Promise<void> {
  const { core, rest, caller } = call;
  const wire = call.json(isStrict(call) ? strictChangesSchema : changesSchema);
  const response = await core.responses.change(rest, toChanges(wire, core.clock.now()), caller.principal);
  answerJson(call, 200, toWireResponse(response));
}

async function deleteResponse(call: Call): Promise<void> {
  await call.core.responses.delete(call.rest, call.caller.principal);
  call.responder.start(204, {});
  call.responder.end();
}

const listQuery = z.object({
  door: z.enum(["lmsp", "openai", "ollama", "nnrp"]).optional(),
  model: z.string().optional(),
  status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]).optional(),
  owner: z.string().optional(),
  cursor: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});

async function listResponses(call: Call): Promise<void> {
  const parsed = listQuery.safeParse(Object.fromEntries(call.request.query));
  if (!parsed.success) throw toInvalidRequest(parsed.error.issues);
  const { limit, ...filters } = parsed.data;
  const query: ResponseQuery = { limit, ...compact<Filters>(filters) };
  const page = await call.core.responses.list(query, call.caller.principal);
  const data = page.data.map(({ response }) => toWireResponse(response));
  answerJson(call, 200, { data, next_cursor: page.nextCursor ?? null });
}

interface Filters {
  readonly door?: DoorKind | undefined;
  readonly model?: string | undefined;
  readonly status?: ResponseStatus | undefined;
  readonly owner?: string | undefined;
  readonly cursor?: string | undefined;
}

async function readEvents(call: Call): Promise<void> {
  const { core, rest, caller, responder } = call;
  const reader = await core.responses.events(rest, placeOf(call), caller.principal);
  if (reader === undefined) {
    // An EventSource stops at 204 (HTML standard, server-sent events).
    responder.start(204, {});
    responder.end();
    return;
  }
  await streamResponse({
    reader,
    renderer: createRenderer({}),
    responder,
    clock: core.clock,
    headersAfterMs: 0,
    // Its headers have left: a problem is told in the stream.
    refuse: () => {},
  });
}

/** Sequence after which reading starts: `Last-Event-ID`, which a browser adds when it comes back, else `?after=N`. */
function placeOf({ request }: Call): number {
  const sent = request.headers["last-event-id"] ?? "";
  const isQuery = sent === "";
  const text = isQuery ? (request.query.get("after") ?? "") : sent;
  if (text === "") return 0;
  if (!/^\d{1,15}$/.test(text)) {
    throw new CoreError(
      "invalid-request",
      `The place to resume after must be an event's number, not '${text.slice(0, 40)}'.`,
      {
        param: isQuery ? "after" : "Last-Event-ID",
      },
    );
  }
  return Number(text);
}
