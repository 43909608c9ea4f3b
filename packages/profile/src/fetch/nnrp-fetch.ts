import { type ClientSession, type Clock, NnrpError, type SessionOptions, systemClock } from "@plenum/nnrp";
import type { CallLimits, CallOptions, ProfileCall } from "../client/call.ts";
import { lostEnd } from "../client/call-end.ts";
import { createProfileClient } from "../client/client.ts";
import { profileError } from "../errors.ts";
import { isJsonObject, type JsonObject, parseObject } from "../json.ts";
import { traceFromTraceparent } from "../trace.ts";
import { failedToFetch, streamedAnswer, wholeAnswer } from "./answers.ts";
import { ChatSse } from "./chat-sse.ts";
import { errorResponse } from "./error-response.ts";
import { type ReadRequest, readRequest } from "./read-request.ts";
import { ResponsesSse } from "./responses-sse.ts";
import type { Route } from "./route.ts";
import { type Connect, SessionHolder } from "./session-holder.ts";
import type { SseRequest, SseSource } from "./sse.ts";

export interface NnrpFetchOptions {
  /** Requests in flight at once; further ones wait. Other implementations refuse more than 4. @default 4 */
  readonly maxInFlight?: number;
  /** Whether the `Authorization` header goes along, as `nnrp.authorization`. @default true */
  readonly sendAuthorization?: boolean;
  /** Whether streams ask for OpenAI's own chunks; without, and from services that have none, chunks are rebuilt. @default true */
  readonly asksForChunks?: boolean;
  /** Milliseconds for one request. @default none */
  readonly timeoutMs?: number;
  /** Further options of the session. */
  readonly session?: SessionOptions;
  readonly limits?: Partial<CallLimits>;
  /** @default the platform's */
  readonly clock?: Clock;
}

/** A `fetch` for clients of OpenAI's API. */
export interface NnrpFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Closes the session and its connection; the next request opens another. */
  close(): Promise<void>;
}

/**
 * Makes a `fetch` that sends `POST …/chat/completions`, `…/responses`, `…/embeddings`, and `GET …/models`, `…/models/<id>`
 * over NNRP, whatever host the URL names; anything else is 404. A session is opened at the first request, and again after
 * it was lost. As with any `fetch`, a lost connection is a TypeError, before the answer or in its stream.
 */
export function nnrpFetch(connect: Connect, options: NnrpFetchOptions = {}): NnrpFetch {
  const { maxInFlight = 4, session } = options;
  const holder = new SessionHolder(connect, { maxInFlight, ...session });
  const run = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = await readRequest(input, init);
    request.signal?.throwIfAborted();
    return request.route === undefined ? unknownUrl(request) : await answer(request, request.route, holder, options);
  };
  return Object.assign(run, { close: () => holder.close() });
}

function unknownUrl({ method, url }: ReadRequest): Response {
  const message = `There is no ${method} ${url.pathname} over NNRP.`;
  return errorResponse(profileError("unknown_url", message));
}

async function answer(
  request: ReadRequest,
  route: Route,
  holder: SessionHolder,
  options: NnrpFetchOptions,
): Promise<Response> {
  const body = route.operation === "models.list" ? {} : bodyOf(request);
  if (body instanceof Response) return body;
  let session: ClientSession;
  try {
    session = await untilAborted(holder.get(), request.signal);
  } catch (error) {
    request.signal?.throwIfAborted();
    return refusedSession(error);
  }
  const { clock = systemClock, limits } = options;
  const client = createProfileClient(session, { clock, ...(limits && { limits }) });
  const call = client.call(route.operation, body, toCallOptions(request, body, options));
  if (body["stream"] !== true) return await wholeAnswer(call, route, request.signal);
  return await streamedAnswer(call, request.signal, toSource(route, call, body, clock));
}

function bodyOf({ body }: ReadRequest): JsonObject | Response {
  const parsed = parseObject(body);
  if (parsed.ok) return parsed.value;
  return errorResponse(profileError("invalid_body", `The body can't be read: ${parsed.problem}.`));
}

/** The promise, or the signal's reason as soon as it fires. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** A session that was refused is an answer of the service; one that could not be reached is none. */
function refusedSession(error: unknown): Response {
  if (!(error instanceof NnrpError) || error.code !== "session-rejected") throw failedToFetch(error);
  const { event, status } = lostEnd(error);
  if (event.type !== "response.error") throw failedToFetch(error);
  return errorResponse(event.error, { status });
}

function toCallOptions({ headers, signal }: ReadRequest, body: JsonObject, options: NnrpFetchOptions): CallOptions {
  const { sendAuthorization = true, asksForChunks = true, timeoutMs } = options;
  const authorization = headers.get("authorization");
  const traceContext = traceFromTraceparent(headers.get("traceparent") ?? "");
  return {
    ...(signal && { signal }),
    ...(sendAuthorization && authorization && { authorization }),
    ...(asksForChunks && body["stream"] === true && { openaiChunk: true }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(traceContext && { traceContext }),
  };
}

function toSource({ operation }: Route, call: ProfileCall, body: JsonObject, clock: Clock): SseSource {
  const options = body["stream_options"];
  const request: SseRequest = {
    requestId: call.requestId,
    model: typeof body["model"] === "string" ? body["model"] : "",
    created: Math.floor(clock.now() / 1000),
    includeUsage: isJsonObject(options) && options["include_usage"] === true,
  };
  return operation === "responses.create" ? new ResponsesSse(request) : new ChatSse(request);
}
