import { CoreError, type DisconnectPolicy, type ResponseRequest, requestLimits } from "@plenum/core";
import type { DoorRequest } from "./door.ts";
import { readTrace } from "./trace.ts";

/** What LMSP's request headers say; absent ones keep the door's default (LMSP §5). */
export type HeaderFields = Partial<
  Pick<ResponseRequest, "priority" | "deadlineMs" | "onDisconnect" | "supersedes" | "via" | "trace">
>;

/** Longest time that a client may ask for: a timer can't wait longer. */
const maxTimeoutMs = 2_147_483_647;

/**
 * Reads `X-LMSP-Priority` (-8 … 8, higher sooner), `X-LMSP-Timeout-Ms` (milliseconds from acceptance, at least 1),
 * `X-LMSP-On-Disconnect` (`cancel` or `continue`), `X-LMSP-Supersedes` (id of an own earlier response) and `X-LMSP-Via`
 * (ids of the services that sent the request on), for doors whose bodies have no words for them.
 * @param nowMs milliseconds since the epoch, from which the timeout counts.
 * @throws CoreError invalid-request with the header as `param`.
 */
export function readRequestHeaders(headers: DoorRequest["headers"], nowMs: number): HeaderFields {
  const { priority: most } = requestLimits;
  const priority = wholeNumber(headers, "X-LMSP-Priority", -most, most);
  const timeoutMs = wholeNumber(headers, "X-LMSP-Timeout-Ms", 1, maxTimeoutMs);
  const onDisconnect = disconnectPolicy(headers);
  const supersedes = earlierResponse(headers);
  const via = servicesBefore(headers);
  const trace = readTrace(headerValue(headers, "traceparent"), headerValue(headers, "tracestate"));
  return {
    ...(priority === undefined ? {} : { priority }),
    ...(timeoutMs === undefined ? {} : { deadlineMs: nowMs + timeoutMs }),
    ...(onDisconnect === undefined ? {} : { onDisconnect }),
    ...(supersedes === undefined ? {} : { supersedes }),
    ...(via === undefined ? {} : { via }),
    ...(trace === undefined ? {} : { trace }),
  };
}

function headerValue(headers: DoorRequest["headers"], name: string): string | undefined {
  const value = headers[name.toLowerCase()]?.trim();
  return value === "" ? undefined : value;
}

function wholeNumber(headers: DoorRequest["headers"], name: string, min: number, max: number): number | undefined {
  const text = headerValue(headers, name);
  if (text === undefined) return undefined;
  const value = /^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new CoreError("invalid-request", `The header ${name} must be a whole number from ${min} to ${max}.`, {
    param: name,
  });
}

function disconnectPolicy(headers: DoorRequest["headers"]): DisconnectPolicy | undefined {
  const name = "X-LMSP-On-Disconnect";
  const value = headerValue(headers, name)?.toLowerCase();
  if (value === undefined || value === "cancel" || value === "continue") return value;
  throw new CoreError("invalid-request", `The header ${name} must be cancel or continue.`, { param: name });
}

function earlierResponse(headers: DoorRequest["headers"]): string | undefined {
  const name = "X-LMSP-Supersedes";
  const id = headerValue(headers, name);
  if (id === undefined || /^[\w-]{1,64}$/.test(id)) return id;
  throw new CoreError("invalid-request", `The header ${name} must be the id of an earlier response.`, { param: name });
}

/**
 * The client's `Idempotency-Key` (IETF draft): 1 to 255 visible characters, within quotes or without; undefined without one.
 * @throws CoreError invalid-request
 */
export function idempotencyKeyIn(headers: DoorRequest["headers"]): string | undefined {
  const name = "Idempotency-Key";
  const value = headerValue(headers, name);
  if (value === undefined) return undefined;
  const key = /^"(.*)"$/.exec(value)?.[1] ?? value;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new CoreError("invalid-request", `The header ${name} must have 1 to 255 plain characters.`, { param: name });
}

/** Services that a request may have come through. */
const mostServices = 16;

/** Ids of the services that sent the request on, in order. */
function servicesBefore(headers: DoorRequest["headers"]): readonly string[] | undefined {
  const name = "X-LMSP-Via";
  const text = headerValue(headers, name);
  if (text === undefined) return undefined;
  const ids = text.split(",").map((id) => id.trim());
  if (ids.length <= mostServices && ids.every((id) => /^[\w.-]{1,64}$/.test(id))) return ids;
  throw new CoreError(
    "invalid-request",
    `The header ${name} must be at most ${mostServices} service ids with commas.`,
    {
      param: name,
    },
  );
}
