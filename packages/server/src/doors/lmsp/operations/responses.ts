import { type DoorKind, isTerminal, type ResponseQuery, type ResponseStatus } from "@plenum/core";
import { z } from "zod";
import { compact } from "../../shared/compact.ts";
import { createBackground } from "../../shared/create-background.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { toInvalidRequest } from "../../shared/parse-body.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { type AnsweredResponse, answerJson, completeForOwner, streamToOwner } from "../../shared/run-response.ts";
import { readAsyncPreference } from "../prefer.ts";
import { toChanges, toCoreRequest } from "../request.ts";
import { toWireResponse } from "../response.ts";
import { changesSchema, responseSchema, strictChangesSchema, strictResponseSchema } from "../schema.ts";
import { createRenderer } from "../stream.ts";
import { streamEvents } from "../stream-events.ts";
import { isStrict } from "../strict.ts";
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

async function createResponse(call: Call): Promise<void> {
  const { request } = call;
  const wire = call.json(isStrict(call) ? strictResponseSchema : responseSchema);
  const isStream = wire.stream ?? /\btext\/event-stream\b/i.test(request.headers["accept"] ?? "");
  const nowMs = call.core.clock.now();
  const { respondAsync, waitMs } = readAsyncPreference(request);
  const background = wire.background ?? respondAsync;
  const headers = readRequestHeaders(request.headers, nowMs);
  const coreRequest = toCoreRequest({ ...wire, background }, nowMs, isStream, headers);
  const applied = respondAsync && background ? { "preference-applied": "respond-async" } : {};
  const options = {
    call,
    door: "lmsp",
    request: coreRequest,
    headersAfterMs: background ? 0 : headersAfterMs,
  } as const;
  if (isStream) {
    await streamToOwner(options, (answered) => createRenderer({ ...headersOf(answered), ...applied }));
    return;
  }
  if (background) {
    const { answered, record } = await createBackground(call, "lmsp", coreRequest, waitMs);
    // Who would not wait gets the answer to a task, also when it was done before it could be written.
    const status = waitMs > 0 && isTerminal(record.response) ? 200 : 202;
    answerJson(call, status, toWireResponse(record.response), { ...headersOf(answered), ...applied });
    return;
  }
  const completed = await completeForOwner(options);
  if (completed === undefined) return;
  const { answered, response } = completed;
  answerJson(call, 200, toWireResponse(response), headersOf(answered));
}

function headersOf({ id, withoutEffect }: AnsweredResponse): Record<string, string> {
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
  await streamEvents(call, call.rest);
}
