import type { ProfileCall } from "../client/call.ts";
import type { ProfileRequestError } from "../client/request-error.ts";
import { type ProfileError, statusOfError } from "../errors.ts";
import type { JsonObject } from "../json.ts";

/** OpenAI's error object; all four members are always there. */
export function toOpenAIError({ type, code, message, param }: ProfileError): JsonObject {
  return { message, type, param: param ?? null, code };
}

export interface ErrorResponseOptions {
  readonly status?: number;
  readonly requestId?: string;
  /** Milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** An error before the answer has started. */
export function errorResponse(error: ProfileError, options: ErrorResponseOptions = {}): Response {
  const { status = statusOfError(error), requestId, retryAfterMs } = options;
  return jsonResponse({ error: toOpenAIError(error) }, status, {
    ...(requestId === undefined ? {} : { "x-request-id": requestId }),
    ...(retryAfterMs === undefined
      ? {}
      : { "retry-after": String(Math.ceil(retryAfterMs / 1000)), "retry-after-ms": String(retryAfterMs) }),
  });
}

export function failureResponse({ failure }: ProfileRequestError): Response {
  return errorResponse(failure.error, failure);
}

export function jsonResponse(body: JsonObject, status: number, headers: Record<string, string>): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
  });
}

export function headersOf({ requestId }: ProfileCall): Record<string, string> {
  return { "x-request-id": requestId };
}
