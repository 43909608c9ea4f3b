import { DropReason, type NnrpError, type OperationEnd, SessionErrorCode } from "@plenum/nnrp";
import { readDiagnostics } from "../diagnostics.ts";
import { errorOfStatus, type ProfileError, type ProfileErrorCode, profileError, statusOfError } from "../errors.ts";
import type { Cancelled, Failed, TerminalEvent } from "../events/event.ts";
import type { EventReader } from "../events/read-event.ts";
import type { EventOrder } from "../order.ts";
import { profilePayload } from "../payload.ts";
import type { FailureOrigin } from "./request-error.ts";

/** How a call ended. Ends that the wire tells without an event have the event that says the same. */
export interface CallEnd {
  readonly event: TerminalEvent;
  /** 200, or as of `statusOfError`; 499 when it was cancelled. */
  readonly status: number;
  /** `service` for every answer. */
  readonly origin: FailureOrigin;
  /** The reason of a RESULT_DROP_REASON. */
  readonly dropReason?: number;
  /** What lies behind a lost connection. */
  readonly cause?: unknown;
}

export function failedEnd(error: ProfileError, origin: FailureOrigin, more: Partial<CallEnd> = {}): CallEnd {
  const event: Failed = { type: "response.error", error };
  return { event, status: statusOfError(error), origin, ...more };
}

export function cancelledEnd(reason: string, origin: FailureOrigin, more: Partial<CallEnd> = {}): CallEnd {
  const event: Cancelled = { type: "response.cancelled", reason };
  return { event, status: 499, origin, ...more };
}

/** The end of an operation in the profile's words. */
export function toCallEnd(end: OperationEnd, reader: EventReader, order: EventOrder): CallEnd {
  switch (end.type) {
    case "result":
      return resultEnd(end, reader, order);
    case "dropped":
      return droppedEnd(end.reason, end.diagnostic);
    case "failed":
      return lostEnd(end.error);
  }
}

function resultEnd(end: Extract<OperationEnd, { type: "result" }>, reader: EventReader, order: EventOrder): CallEnd {
  const payload = profilePayload(end.payloads);
  if (payload === undefined) {
    if (end.body.length > 0) return invalidEnd("RESULT_PUSH has no structured event.");
    if (end.status >= 400) return failedEnd(errorOfStatus(end.status, "The service gave no reason."), "service");
    return { event: { type: "response.completed", body: {} }, status: end.status, origin: "service" };
  }
  const result = reader.read(payload);
  if (result.kind === "unknown") return invalidEnd("RESULT_PUSH carries an unknown event.");
  if (result.kind === "invalid") return invalidEnd(result.message);
  const { event } = result;
  const fault = order.take(event, "terminal");
  if (fault !== undefined) return invalidEnd(fault.message);
  switch (event.type) {
    case "response.completed":
      return { event, status: end.status < 400 ? end.status : 200, origin: "service" };
    case "response.error":
      return { event, status: statusOfError(event.error, end.status), origin: "service" };
    case "response.cancelled":
      return { event, status: 499, origin: "service" };
    default:
      return invalidEnd("RESULT_PUSH carries an event that is not terminal.");
  }
}

/** The peer did not keep to the profile. */
export function invalidEnd(message: string): CallEnd {
  return failedEnd(profileError("invalid_event_stream", message), "client");
}

const codeOfDrop: Readonly<Record<number, ProfileErrorCode>> = {
  [DropReason.deadlineExpired]: "request_timeout",
  [DropReason.backpressure]: "backend_overload",
  [DropReason.capabilityMismatch]: "unsupported_operation",
  [DropReason.budgetExceeded]: "budget_exceeded",
  [DropReason.transportClosed]: "connection_lost",
};

function droppedEnd(dropReason: number, diagnostic: string): CallEnd {
  if (dropReason === DropReason.peerCancelled) return cancelledEnd("peer_cancelled", "protocol", { dropReason });
  if (dropReason === DropReason.superseded) return cancelledEnd("superseded", "protocol", { dropReason });
  const code = codeOfDrop[dropReason] ?? "backend_error";
  const message = diagnostic === "" ? `The service dropped the request (reason ${dropReason}).` : diagnostic;
  return failedEnd(profileError(code, message), "protocol", { dropReason });
}

/** An operation that the session could not finish, or a session that could not be opened. */
export function lostEnd(cause: NnrpError): CallEnd {
  switch (cause.code) {
    case "aborted":
      return cancelledEnd("peer_cancelled", "protocol", { cause });
    case "cancelled":
      return cancelledEnd("client_cancelled", "client", { cause });
    case "limit-reached":
      return failedEnd(profileError("adapter_operation_limit", cause.message), "client", { cause });
    case "invalid-argument":
      return failedEnd(profileError("invalid_body", cause.message), "client", { cause });
    case "session-rejected": {
      const isAuth = cause.nnrpCode === SessionErrorCode.authFailed;
      const code = isAuth ? "invalid_api_key" : "scheduler_rejected";
      return failedEnd(profileError(code, cause.message), "protocol", { cause });
    }
    default:
      return failedEnd(profileError("connection_lost", cause.message), "connection", { cause });
  }
}

/** Milliseconds to wait, as the event's diagnostics say. */
export function retryAfterOf(event: TerminalEvent): number | undefined {
  if (event.type !== "response.error" || event.diagnostics === undefined) return undefined;
  return readDiagnostics(event.diagnostics).retryAfterMs;
}
