import type { LmspEvent } from "./events.ts";
import { isTerminalEvent } from "./events.ts";
import { follow, type ResumePolicy } from "./follow.ts";
import { type Call, type Http, withQuery } from "./http.ts";
import type { Page } from "./models.ts";
import type { ListResponsesOptions, LmspResponse, ResponseChange, ResponseRequest } from "./responses.ts";

export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface EventsOptions extends CallOptions {
  /** Sequence after which to start. Default 0: from the first event. */
  readonly after?: number;
}

export interface ResponsesApi {
  /**
   * Runs a request to its end; with `background` it comes back at once. Losing the connection cancels it, and a
   * platform may give up on a silent connection (Node after 300 s): use `stream` for long answers.
   */
  create(request: ResponseRequest, options?: CallOptions): Promise<LmspResponse>;
  /**
   * Runs a request and gives its events, over several connections when one breaks. Starts with the first event that is
   * asked for. Leaving early or aborting cancels the response, unless it is `background` or `on_disconnect` is
   * `continue`.
   */
  stream(request: ResponseRequest, options?: CallOptions): AsyncGenerator<LmspEvent>;
  /** Events of a response that runs or ran, resumed when the connection breaks. Leaving early changes nothing. */
  events(id: string, options?: EventsOptions): AsyncGenerator<LmspEvent>;
  /** @throws LmspError `not-found`. */
  get(id: string, options?: CallOptions): Promise<LmspResponse>;
  list(filter?: ListResponsesOptions, options?: CallOptions): Promise<Page<LmspResponse>>;
  /** Changes what waits or runs. @throws LmspError `conflict` when it has ended. */
  change(id: string, change: ResponseChange, options?: CallOptions): Promise<LmspResponse>;
  /** Nothing happens when it has ended already. */
  cancel(id: string, options?: CallOptions): Promise<LmspResponse>;
  delete(id: string, options?: CallOptions): Promise<void>;
}

const path = "/lmsp/v1/responses";
const eventStream = "text/event-stream";

function pathOf(id: string, rest = ""): string {
  return `${path}/${encodeURIComponent(id)}${rest}`;
}

/** The calls under `/lmsp/v1/responses`. */
export function createResponsesApi(http: Http, policy: ResumePolicy): ResponsesApi {
  return {
    create: (request, { signal } = {}) =>
      http.json({ method: "POST", path, body: { ...request, stream: false }, signal }),
    stream: (request, { signal } = {}) =>
      request.background === true
        ? streamBackground(http, policy, request, signal)
        : streamOwned(http, policy, request, signal),
    events: (id, { after = 0, signal } = {}) => watch(http, policy, id, after, signal),
    get: (id, { signal } = {}) => http.json({ path: pathOf(id), signal }),
    list: (filter = {}, { signal } = {}) => http.json({ path: withQuery(path, { ...filter }), signal }),
    change: (id, change, { signal } = {}) => http.json({ method: "PATCH", path: pathOf(id), body: change, signal }),
    cancel: (id, { signal } = {}) => http.json({ method: "POST", path: pathOf(id, "/cancel"), signal }),
    delete: (id, { signal } = {}) => http.nothing({ method: "DELETE", path: pathOf(id), signal }),
  };
}

function eventsCall(id: string, after: number, signal: AbortSignal | undefined): Call {
  const headers: Record<string, string> = after > 0 ? { "last-event-id": String(after) } : {};
  return { path: pathOf(id, "/events"), accept: eventStream, headers, signal };
}

async function* watch(
  http: Http,
  policy: ResumePolicy,
  id: string,
  after: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<LmspEvent> {
  const reopen = (last: number) => http.send(eventsCall(id, last, signal));
  yield* follow<LmspEvent>({ first: await reopen(after), after, reopen, isLast: isTerminalEvent, policy, signal });
}

/** A background response is made first and then watched: it belongs to no connection. */
async function* streamBackground(
  http: Http,
  policy: ResumePolicy,
  request: ResponseRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<LmspEvent> {
  const made = await http.json<LmspResponse>({ method: "POST", path, body: { ...request, stream: false }, signal });
  yield* watch(http, policy, made.id, 0, signal);
}

/** Longest that an aborted request is waited for, to learn the id under which it must be cancelled. */
const idWaitMs = 3000;

async function* streamOwned(
  http: Http,
  policy: ResumePolicy,
  request: ResponseRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<LmspEvent> {
  const keeps = request.on_disconnect === "continue";
  const connection = new AbortController();
  const opening = http.send({
    method: "POST",
    path,
    body: { ...request, stream: true },
    accept: eventStream,
    signal: connection.signal,
  });
  const disconnect = () => connection.abort(signal?.reason);
  let id: string | undefined;
  let isEnded = false;
  try {
    const first = await unlessAborted(opening, signal);
    id = first.headers.get("x-lmsp-response-id") ?? undefined;
    signal?.addEventListener("abort", disconnect, { once: true });
    const reopen = (last: number) => http.send(eventsCall(id ?? "", last, connection.signal));
    for await (const event of follow<LmspEvent>({
      first,
      after: 0,
      reopen,
      isLast: isTerminalEvent,
      policy,
      signal: connection.signal,
    })) {
      if (event.type === "response.created") id = event.response.id;
      isEnded = isTerminalEvent(event);
      yield event;
    }
    isEnded = true;
  } finally {
    signal?.removeEventListener("abort", disconnect);
    if (isEnded || keeps) connection.abort();
    else void abandon(http, opening, connection, id);
  }
}

/** Cancels a response that nobody reads any more. The service does so by itself later, so a failure is no loss. */
async function abandon(
  http: Http,
  opening: Promise<Response>,
  connection: AbortController,
  id: string | undefined,
): Promise<void> {
  const timer = setTimeout(() => connection.abort(), idWaitMs);
  try {
    const known = id ?? (await opening).headers.get("x-lmsp-response-id");
    if (known !== null) await (await http.send({ method: "POST", path: pathOf(known, "/cancel") })).body?.cancel();
  } catch {
    // The request failed by itself, or the service is gone: nothing is left to cancel.
  } finally {
    clearTimeout(timer);
    connection.abort();
  }
}

/** The promise, or a rejection with the signal's reason as soon as it is aborted. */
function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
  });
}
