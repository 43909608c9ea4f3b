import { type CoreError, type Problem, type ProblemCode, problems } from "@plenum/core";
import type { DoorRequest, RenderedProblem } from "../shared/door.ts";
import type { WireError } from "../shared/openai/event-source.ts";

interface ErrorRow {
  /** HTTP status; `backend` stands for the runtime's own. */
  readonly status: number | "backend";
  readonly type: string;
  readonly code: string | null;
}

const invalid = "invalid_request_error";
const server = "server_error";

/** Each problem in OpenAI's words (LMSP §3). */
export const errorTable = {
  "invalid-json": { status: 400, type: invalid, code: null },
  "invalid-request": { status: 400, type: invalid, code: null },
  "unsupported-operation": { status: 404, type: invalid, code: "unknown_url" },
  "not-found": { status: 404, type: invalid, code: null },
  "method-not-allowed": { status: 405, type: invalid, code: "method_not_allowed" },
  "unsupported-media-type": { status: 415, type: invalid, code: "unsupported_media_type" },
  unauthorized: { status: 401, type: invalid, code: "invalid_api_key" },
  forbidden: { status: 403, type: "permission_error", code: "insufficient_scope" },
  "host-refused": { status: 403, type: "permission_error", code: "host_refused" },
  "model-not-found": { status: 404, type: invalid, code: "model_not_found" },
  "unsupported-capability": { status: 400, type: invalid, code: "unsupported_value" },
  "context-length-exceeded": { status: 400, type: invalid, code: "context_length_exceeded" },
  "request-too-large": { status: 413, type: invalid, code: "request_too_large" },
  "invalid-output": { status: 502, type: server, code: "invalid_output" },
  "idempotency-in-progress": { status: 409, type: "idempotency_error", code: "idempotency_in_progress" },
  "idempotency-mismatch": { status: 422, type: "idempotency_error", code: "idempotency_mismatch" },
  conflict: { status: 409, type: invalid, code: "conflict" },
  "rate-limited": { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" },
  "quota-exceeded": { status: 429, type: "rate_limit_error", code: "insufficient_quota" },
  overloaded: { status: 503, type: server, code: "overloaded" },
  draining: { status: 503, type: server, code: "overloaded" },
  "model-loading": { status: 503, type: server, code: "model_loading" },
  "insufficient-memory": { status: 503, type: server, code: "insufficient_resources" },
  "insufficient-storage": { status: 503, type: server, code: "insufficient_resources" },
  "deadline-exceeded": { status: 504, type: server, code: "timeout" },
  cancelled: { status: 499, type: server, code: "cancelled" },
  superseded: { status: 499, type: server, code: "cancelled" },
  "backend-unavailable": { status: 503, type: server, code: "backend_unavailable" },
  "backend-refused": { status: "backend", type: invalid, code: null },
  "backend-error": { status: 502, type: server, code: "backend_error" },
  interrupted: { status: 503, type: server, code: "interrupted" },
  "events-expired": { status: 410, type: invalid, code: "events_expired" },
  internal: { status: 500, type: server, code: "internal_error" },
} as const satisfies Record<ProblemCode, ErrorRow>;

export function statusOf({ code, details }: Pick<Problem, "code" | "details">): number {
  const { status } = errorTable[code];
  return status === "backend" ? (details.backendStatus ?? problems[code].status) : status;
}

/** A problem as OpenAI's error object. */
export function toWireError({ code, detail, details }: Problem): WireError {
  const row = errorTable[code];
  return { message: detail, type: row.type, param: details.param ?? null, code: row.code };
}

/** An error before the answer has started. SDKs retry by status, so they are told where it can't help. */
export function renderProblem(error: CoreError, _request: DoorRequest): RenderedProblem {
  const { retryAfterMs, reason } = error.details;
  const status = statusOf(error);
  return {
    status,
    headers: {
      "content-type": "application/json; charset=utf-8",
      ...(problems[error.code].retry === "no" ? { "x-should-retry": "false" } : {}),
      ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
      ...(error.code === "method-not-allowed" && reason ? { allow: reason } : {}),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    },
    body: JSON.stringify({ error: toWireError(error) }),
  };
}
