import type { ProfileCall } from "../client/call.ts";
import { failedEnd } from "../client/call-end.ts";
import { toRequestError } from "../client/stream.ts";
import { profileError } from "../errors.ts";
import { isTerminalEvent } from "../events/event.ts";
import { isJsonObject } from "../json.ts";
import { errorResponse, failureResponse, headersOf, jsonResponse } from "./error-response.ts";
import type { Route } from "./route.ts";
import type { SseSource } from "./sse.ts";

/** The answer to a request that asked for no stream. */
export async function wholeAnswer(call: ProfileCall, route: Route, signal: AbortSignal | undefined): Promise<Response> {
  for await (const _event of call);
  const { end } = call;
  if (end?.event.type !== "response.completed") return failed(call, signal);
  const { body } = end.event;
  if (Object.keys(body).length === 0) {
    const error = profileError("invalid_event_stream", "The answer is empty.");
    return errorResponse(error, { requestId: call.requestId });
  }
  if (!("model" in route)) return jsonResponse(body, end.status, headersOf(call));
  const models = Array.isArray(body["data"]) ? body["data"].filter(isJsonObject) : [];
  const model = models.find(({ id }) => id === route.model);
  if (model !== undefined) return jsonResponse(model, 200, headersOf(call));
  return errorResponse(profileError("model_not_found", "There is no such model.", "model"), {
    requestId: call.requestId,
  });
}

/** @throws what a fetch throws when there is no answer: the signal's reason, or a TypeError. */
function failed(call: ProfileCall, signal: AbortSignal | undefined): Response {
  signal?.throwIfAborted();
  const end = call.end ?? failedEnd(profileError("internal_error", "The call has no end."), "client");
  if (end.origin === "connection") throw failedToFetch(end.cause);
  return failureResponse(toRequestError(call, end));
}

/** A stream of server-sent events. Waits for the first output, so that an error before it has a status of its own. */
export async function streamedAnswer(
  call: ProfileCall,
  signal: AbortSignal | undefined,
  source: SseSource,
): Promise<Response> {
  const events = call[Symbol.asyncIterator]();
  let first = "";
  while (first === "") {
    const { value: event, done } = await events.next();
    if (done || (isTerminalEvent(event) && event.type !== "response.completed")) return failed(call, signal);
    first = event.type === "response.completed" ? endOf(call, source) : source.take(event);
  }
  const encoder = new TextEncoder();
  let isOver = call.end !== undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(first));
      if (isOver) controller.close();
    },
    async pull(controller) {
      for (let text = ""; text === "" && !isOver; ) {
        const { value: event, done } = await events.next();
        isOver = done === true || isTerminalEvent(event);
        if (isOver) refuseBroken(call, signal);
        text = done || isTerminalEvent(event) ? endOf(call, source) : source.take(event);
        if (text !== "") controller.enqueue(encoder.encode(text));
      }
      if (isOver) controller.close();
    },
    cancel() {
      call.cancel();
    },
  });
  const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
  return new Response(body, { status: 200, headers: { ...headers, ...headersOf(call) } });
}

/** @throws as the stream of a fetch fails when it breaks. */
function refuseBroken({ end }: ProfileCall, signal: AbortSignal | undefined): void {
  signal?.throwIfAborted();
  if (end?.origin === "connection") throw new TypeError("terminated", { cause: end.cause });
}

function endOf({ end }: ProfileCall, source: SseSource): string {
  return end === undefined ? "" : source.end(end);
}

/** As the platform's fetch fails. */
export function failedToFetch(cause: unknown): TypeError {
  return new TypeError("fetch failed", { cause });
}
