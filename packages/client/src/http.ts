import { LmspError, readError } from "./problem.ts";

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;

export interface HttpOptions {
  readonly baseUrl: string;
  readonly token?: string | undefined;
  readonly fetch?: Fetch | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** From the base URL, with a slash before it. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Media type that is asked for. Default `application/json`. */
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Sends requests to one service; every failure is an LmspError or the signal's reason. */
export interface Http {
  /** The answer when it is 2xx; the caller has to read or cancel its body. */
  send(call: Call): Promise<Response>;
  /** The JSON of the answer. The caller names its type: what the service promises is not checked again. */
  json<Answer>(call: Call): Promise<Answer>;
  /** For calls whose answer has nothing to tell. */
  nothing(call: Call): Promise<void>;
}

/** A path with the members that are there as its query; of a list, each. */
export function withQuery(
  path: string,
  members: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (typeof value === "object") for (const each of value) query.append(name, each);
    else if (value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Base URL of a service as people write it: `host:port`, with or without scheme, final slash or `/lmsp/v1`. */
export function normalizeBaseUrl(url: string): string {
  const withScheme = /^https?:\/\//i.test(url) ? url : `http://${url}`;
  return withScheme.replace(/\/+$/, "").replace(/\/lmsp\/v1$/, "");
}

/** Makes the sender of a client. */
export function createHttp(options: HttpOptions): Http {
  const base = normalizeBaseUrl(options.baseUrl);
  const send = async (call: Call): Promise<Response> => {
    const answer = await request(options, base, call);
    if (!answer.ok) throw await readError(answer);
    return answer;
  };
  const json = async <Answer>(call: Call): Promise<Answer> => {
    const answer = await send(call);
    try {
      return await answer.json();
    } catch (cause) {
      call.signal?.throwIfAborted();
      throw new LmspError({
        code: "invalid-answer",
        status: answer.status,
        detail: `${base}${call.path} did not answer with JSON: is this address an LMSP service?`,
        cause,
      });
    }
  };
  const nothing = async (call: Call): Promise<void> => {
    const answer = await send(call);
    await answer.body?.cancel();
  };
  return { send, json, nothing };
}

async function request(options: HttpOptions, base: string, call: Call): Promise<Response> {
  const headers: Record<string, string> = { accept: call.accept ?? "application/json", ...call.headers };
  if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`;
  if (call.body !== undefined) headers["content-type"] = "application/json";
  const init: RequestInit = { method: call.method ?? "GET", headers };
  if (call.body !== undefined) init.body = JSON.stringify(call.body);
  if (call.signal !== undefined) init.signal = call.signal;
  const send = options.fetch ?? globalThis.fetch;
  try {
    return await send(`${base}${call.path}`, init);
  } catch (cause) {
    call.signal?.throwIfAborted();
    throw new LmspError({ code: "unreachable", detail: `No service answers at ${base}${reasonOf(cause)}`, cause });
  }
}

/** Node puts the system's reason into `cause`; browsers give none. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null || !("code" in cause)) return ".";
  return ` (${String(cause.code)}).`;
}
