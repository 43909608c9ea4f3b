import { CoreError, type ProblemCode, type ProblemDetails } from "@plenum/core";
import { NnrpError, SessionErrorCode } from "@plenum/nnrp";
import type { CallEnd, ProfileCall, ProfileError } from "@plenum/profile";
import { cleanMessage } from "../shared/error-facts.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { upstreamFailure } from "../shared/upstream-failure.ts";

/** Codes of the profile that mean one problem, whatever their status; the others go by status and words, as in HTTP. */
const problemOfCode: Readonly<Record<string, ProblemCode>> = {
  unsupported_model: "model-not-found",
  model_not_found: "model-not-found",
  context_length_exceeded: "context-length-exceeded",
  unsupported_capability: "unsupported-capability",
  unsupported_operation: "unsupported-capability",
  backend_overload: "overloaded",
  scheduler_rejected: "overloaded",
  adapter_operation_limit: "overloaded",
  rate_limit_exceeded: "overloaded",
  rate_limited: "overloaded",
  connection_lost: "backend-unavailable",
  invalid_event_stream: "backend-error",
  response_too_large: "backend-error",
  missing_terminal_event: "backend-error",
  request_timeout: "backend-error",
};

export interface EndContext {
  readonly model?: string;
  /** The request had a deadline of its own. */
  readonly hasDeadline?: boolean;
}

/** The end of a call that brought no answer, as the core's problem. */
export function endProblem(call: ProfileCall, end: CallEnd, { model, hasDeadline }: EndContext = {}): CoreError {
  const { event, status } = end;
  const details: ProblemDetails = {
    ...(model === undefined ? {} : { model }),
    ...(call.retryAfterMs === undefined ? {} : { retryAfterMs: call.retryAfterMs }),
  };
  if (event.type !== "response.error") {
    const reason = event.type === "response.cancelled" ? event.reason : "no answer";
    return new CoreError("backend-error", `The runtime gave the answer up (${word(reason)}).`, details);
  }
  const { error } = event;
  if (error.code === "request_timeout" && hasDeadline === true) {
    return new CoreError("deadline-exceeded", "The deadline passed before the runtime was done.", details);
  }
  if (end.origin === "connection") return lost(end.cause, details);
  const code = problemOfCode[error.code];
  if (code === undefined) return byStatus(error, status, details);
  const logDetail = `The runtime answered ${word(error.code)}.`;
  return new CoreError(code, sentence(error, code), { ...details, ...paramOf(code) }, { logDetail });
}

function byStatus(error: ProfileError, status: number, details: ProblemDetails): CoreError {
  if (status === 401 || status === 403) return keyProblem(undefined, details);
  const known = upstreamError({ status, headers: {}, body: { error }, text: "" }, details);
  return new CoreError(known.code, known.detail, { ...details, ...known.details }, { logDetail: known.logDetail });
}

function sentence({ message }: ProfileError, code: ProblemCode): string {
  const said = cleanMessage(message);
  if (said === "") return `The runtime answered ${code} without saying why.`;
  return /[.!?…]$/.test(said) ? said : `${said}.`;
}

function paramOf(code: ProblemCode): ProblemDetails {
  if (code === "model-not-found") return { param: "model" };
  return code === "context-length-exceeded" ? { param: "input" } : {};
}

/** A peer's word as logs may hold it. */
function word(text: string): string {
  return /^[\w.-]{1,60}$/.test(text) ? text : "…";
}

function lost(cause: unknown, details: ProblemDetails): CoreError {
  const detail = "The runtime's connection was lost; it is opened again.";
  return new CoreError("backend-unavailable", detail, details, { cause });
}

const connectDetails = {
  timeout: "The runtime does not answer in time; check that it runs and speaks NNRP.",
  "connect-failed": "The runtime closes connections without a word of NNRP; correct its address.",
  "protocol-error": "What answers at the runtime's address does not speak NNRP; correct it.",
} satisfies Readonly<Partial<Record<NnrpError["code"], string>>>;
const detailOf: Readonly<Partial<Record<NnrpError["code"], string>>> = connectDetails;

/** Why there is no connection or no session, as the core's problem. */
export function connectProblem(error: unknown): unknown {
  if (error instanceof TypeError) {
    return new CoreError("backend-unavailable", `${error.message}.`, {}, { cause: error });
  }
  if (!(error instanceof NnrpError)) return error;
  if (error.code === "session-rejected") return sessionProblem(error);
  const { cause } = error;
  if (error.code === "connect-failed" && cause === undefined) return noRoute(error);
  if (error.code === "connect-failed" && cause instanceof Error && "code" in cause) {
    const known = upstreamFailure(cause, false);
    if (known.code === "backend-unavailable") return known;
  }
  const status = /Unexpected server response: (\d+)/.exec(error.message)?.[1];
  if (status === "401" || status === "403") return keyProblem(error);
  const upgrade =
    status === undefined ? undefined : `The runtime answers the upgrade with ${status}; correct its address.`;
  const detail = upgrade ?? detailOf[error.code] ?? "The runtime's connection was lost; it is opened again.";
  return new CoreError("backend-unavailable", detail, {}, { cause: error });
}

/** Nothing was tried, or nobody took the connection in time. */
function noRoute(cause: NnrpError): CoreError {
  const noPort = "The runtime's url needs a port, or a carrier that is known here.";
  const detail = cause.message.includes("no answer") ? connectDetails.timeout : noPort;
  return new CoreError("backend-unavailable", detail, {}, { cause });
}

function sessionProblem(error: NnrpError): CoreError {
  if (error.nnrpCode === SessionErrorCode.authFailed) return keyProblem(error);
  const detail = `${cleanMessage(error.message)}.`;
  return new CoreError(error.retryLater ? "overloaded" : "backend-unavailable", detail, {}, { cause: error });
}

function keyProblem(cause?: NnrpError, details: ProblemDetails = {}): CoreError {
  const detail = "The runtime does not accept this service's key; correct its api_key.";
  return new CoreError("backend-error", detail, { ...details, backendStatus: 401 }, { cause });
}
