import { isJsonObject, isNonEmptyString, type JsonObject } from "./json.ts";

/** The error object of `response.error`, in OpenAI's words. */
export interface ProfileError {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** The field that is wrong, such as `messages` or `nnrp.timeout_ms`. */
  readonly param?: string;
}

interface ErrorRow {
  readonly type: string;
  /** HTTP-like; it travels in RESULT_PUSH, where it says nothing about the native terminal. */
  readonly status: number;
}

const invalid = "invalid_request_error";
const server = "server_error";

/** Codes of the profile, of its reference adapter (§12.4 of the wire description), and OpenAI's usual ones. */
export const profileErrors = {
  invalid_submit_body: { type: invalid, status: 400 },
  unsupported_schema_version: { type: invalid, status: 400 },
  unsupported_operation: { type: invalid, status: 400 },
  invalid_body: { type: invalid, status: 400 },
  missing_model: { type: invalid, status: 400 },
  missing_messages: { type: invalid, status: 400 },
  invalid_request_id: { type: invalid, status: 400 },
  invalid_nnrp_policy: { type: invalid, status: 400 },
  invalid_api_key: { type: "authentication_error", status: 401 },
  insufficient_scope: { type: "permission_error", status: 403 },
  unsupported_model: { type: invalid, status: 404 },
  model_not_found: { type: invalid, status: 404 },
  unknown_url: { type: invalid, status: 404 },
  duplicate_operation_id: { type: invalid, status: 409 },
  request_too_large: { type: invalid, status: 413 },
  rate_limit_exceeded: { type: "rate_limit_error", status: 429 },
  insufficient_quota: { type: "rate_limit_error", status: 429 },
  client_cancelled: { type: "cancelled_error", status: 499 },
  peer_cancelled: { type: "cancelled_error", status: 499 },
  superseded: { type: "cancelled_error", status: 499 },
  budget_exceeded: { type: invalid, status: 400 },
  backend_failed: { type: server, status: 500 },
  backend_error: { type: server, status: 502 },
  invalid_event_stream: { type: server, status: 502 },
  invalid_tool_call_stream: { type: server, status: 502 },
  tool_call_stream_interrupted: { type: server, status: 502 },
  response_too_large: { type: server, status: 502 },
  missing_terminal_event: { type: server, status: 500 },
  internal_error: { type: server, status: 500 },
  adapter_operation_limit: { type: server, status: 503 },
  backend_overload: { type: server, status: 503 },
  scheduler_rejected: { type: server, status: 503 },
  connection_lost: { type: server, status: 503 },
  request_timeout: { type: "timeout_error", status: 504 },
} as const satisfies Record<string, ErrorRow>;

export type ProfileErrorCode = keyof typeof profileErrors;

/** An error of one of the known codes. */
export function profileError(code: ProfileErrorCode, message: string, param?: string): ProfileError {
  const { type } = profileErrors[code];
  return param === undefined ? { type, code, message } : { type, code, message, param };
}

/** What a type means where neither code nor status says more. */
const statusOfType: Readonly<Record<string, number>> = {
  [invalid]: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  rate_limit_error: 429,
  timeout_error: 504,
};

/**
 * The HTTP status of an error.
 * @param pushed status of the RESULT_PUSH that carried it; below 400 it says nothing. The reference adapter sends 500
 * with every error, so a known code that says something else wins over 500.
 */
export function statusOfError(error: Pick<ProfileError, "type" | "code">, pushed = 0): number {
  const known = Object.hasOwn(profileErrors, error.code) ? profileErrors[error.code as ProfileErrorCode] : undefined;
  const meant = known?.status ?? statusOfType[error.type];
  if (isErrorStatus(pushed) && (pushed !== 500 || meant === undefined)) return pushed;
  return meant ?? 500;
}

function isErrorStatus(status: number): boolean {
  return status >= 400 && status <= 599;
}

/** The usual code for each status. */
const codeOfStatus: Readonly<Record<number, ProfileErrorCode>> = {
  400: "invalid_body",
  401: "invalid_api_key",
  403: "insufficient_scope",
  404: "unsupported_model",
  409: "duplicate_operation_id",
  413: "request_too_large",
  429: "rate_limit_exceeded",
  499: "peer_cancelled",
  502: "backend_error",
  503: "backend_overload",
  504: "request_timeout",
};

/** The error of a status that came without one. */
export function errorOfStatus(status: number, message: string): ProfileError {
  const code = codeOfStatus[status] ?? (status >= 400 && status < 500 ? "invalid_body" : "internal_error");
  return profileError(code, message);
}

/**
 * The error object of an event. Peers leave members out or write a number as code; only an object is asked for.
 * @returns undefined when it is no object.
 */
export function readError(value: unknown): ProfileError | undefined {
  if (!isJsonObject(value)) return undefined;
  if (isWhole(value)) return value;
  const code = typeof value["code"] === "number" ? String(value["code"]) : value["code"];
  const param = value["param"];
  return {
    type: isNonEmptyString(value["type"]) ? value["type"] : server,
    code: isNonEmptyString(code) ? code : "internal_error",
    message: typeof value["message"] === "string" ? value["message"] : "The service gave no reason.",
    ...(isNonEmptyString(param) ? { param } : {}),
  };
}

function isWhole(value: JsonObject): value is JsonObject & ProfileError {
  const { type, code, message, param } = value;
  return (
    isNonEmptyString(type) &&
    isNonEmptyString(code) &&
    typeof message === "string" &&
    (param === undefined || isNonEmptyString(param))
  );
}
