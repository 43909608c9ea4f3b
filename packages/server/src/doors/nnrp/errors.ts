import { type CoreError, type Problem, type ProblemCode, problems } from "@plenum/core";
import { DropReason } from "@plenum/nnrp";
import type { ProfileError } from "@plenum/profile";
import type { DoorRequest, RenderedProblem } from "../shared/door.ts";
import type { WireError } from "../shared/openai/event-source.ts";

interface ErrorRow {
  /** Status of the RESULT_PUSH; `backend` stands for the runtime's own. */
  readonly status: number | "backend";
  readonly type: string;
  readonly code: string;
  /** The operation ends in the protocol's own words instead of `response.error`, wherever it can. */
  readonly native?: "cancelled" | { readonly drop: number };
}

const invalid = "invalid_request_error";
const server = "server_error";

/** Each problem in the profile's words (LMSP §3; wire description §12.4). */
export const errorTable = {
  "invalid-json": { status: 400, type: invalid, code: "invalid_submit_body" },
  "invalid-request": { status: 400, type: invalid, code: "invalid_body" },
  "unsupported-operation": { status: 400, type: invalid, code: "unsupported_operation" },
  "not-found": { status: 404, type: invalid, code: "not_found" },
  "method-not-allowed": { status: 405, type: invalid, code: "method_not_allowed" },
  "unsupported-media-type": { status: 415, type: invalid, code: "invalid_submit_body" },
  unauthorized: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  forbidden: { status: 403, type: "permission_error", code: "forbidden" },
  "host-refused": { status: 403, type: "permission_error", code: "host_refused" },
  "model-not-found": { status: 404, type: invalid, code: "unsupported_model" },
  "unsupported-capability": { status: 400, type: invalid, code: "unsupported_capability" },
  "context-length-exceeded": { status: 400, type: invalid, code: "context_length_exceeded" },
  "request-too-large": { status: 413, type: invalid, code: "request_too_large" },
  "invalid-output": { status: 502, type: server, code: "backend_error" },
  "idempotency-in-progress": { status: 409, type: invalid, code: "duplicate_operation_id" },
  "idempotency-mismatch": { status: 409, type: invalid, code: "duplicate_operation_id" },
  conflict: { status: 409, type: invalid, code: "conflict" },
  "rate-limited": { status: 429, type: "rate_limit_error", code: "rate_limited" },
  "quota-exceeded": { status: 429, type: "rate_limit_error", code: "rate_limited" },
  overloaded: { status: 503, type: server, code: "backend_overload" },
  draining: { status: 503, type: server, code: "backend_overload" },
  "model-loading": { status: 503, type: server, code: "backend_overload" },
  "insufficient-memory": { status: 503, type: server, code: "backend_error" },
  "insufficient-storage": { status: 503, type: server, code: "backend_error" },
  "deadline-exceeded": { status: 504, type: "timeout_error", code: "request_timeout" },
  cancelled: { status: 499, type: "cancelled_error", code: "peer_cancelled", native: "cancelled" },
  superseded: {
    status: 499,
    type: "cancelled_error",
    code: "superseded",
    native: { drop: DropReason.superseded },
  },
  "backend-unavailable": { status: 503, type: server, code: "backend_error" },
  "backend-refused": { status: "backend", type: invalid, code: "backend_error" },
  "backend-error": { status: 502, type: server, code: "backend_error" },
  interrupted: { status: 503, type: server, code: "backend_error", native: { drop: DropReason.transportClosed } },
  "events-expired": { status: 410, type: invalid, code: "events_expired" },
  internal: { status: 500, type: server, code: "internal_error" },
} as const satisfies Record<ProblemCode, ErrorRow>;

export function statusOf({ code, details }: Pick<Problem, "code" | "details">): number {
  const { status } = errorTable[code];
  return status === "backend" ? (details.backendStatus ?? problems[code].status) : status;
}

/** How an operation ends that has this problem: undefined means by `response.error`. */
export function nativeEndOf(code: ProblemCode): ErrorRow["native"] {
  const row: ErrorRow = errorTable[code];
  return row.native;
}

/** A problem as the error object of `response.error`. */
export function toProfileError({ code, detail, details }: Problem): ProfileError {
  const { type, code: wireCode } = errorTable[code];
  const error = { type, code: wireCode, message: detail };
  return details.param === undefined ? error : { ...error, param: details.param };
}

/** The same for the bodies of OpenAI's APIs, where all four members are always there. */
export function toWireError(problem: Problem): WireError {
  return { param: null, ...toProfileError(problem) };
}

/** An error of the capability document's address. */
export function renderProblem(error: CoreError, _request: DoorRequest): RenderedProblem {
  const { reason } = error.details;
  return {
    status: error.code === "unsupported-operation" ? 404 : statusOf(error),
    headers: {
      "content-type": "application/json; charset=utf-8",
      ...(error.code === "method-not-allowed" && reason ? { allow: reason } : {}),
    },
    body: JSON.stringify({ error: toWireError(error) }),
  };
}
