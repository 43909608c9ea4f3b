import { type ProfileError, type ProfileErrorCode, profileError } from "./errors.ts";
import { isCount, isJsonObject, isNonEmptyString, type JsonObject, parseObject } from "./json.ts";
import { operationNames, schemaVersion } from "./profile.ts";

/** What the `nnrp` member of a request asks of the service. It never reaches a model. */
export interface RequestPolicy {
  /** Milliseconds after which the answer is no longer wanted. @default none; 0 is none as well */
  readonly timeoutMs?: number;
  /** Whether to send `response.diagnostics`. @default false */
  readonly diagnostics?: boolean;
  /** As HTTP's header of that name, such as `Bearer <token>`. At most 8192 characters. */
  readonly authorization?: string;
  /** What becomes of the work when the connection is lost. @default "cancel" */
  readonly onDisconnect?: "cancel" | "continue";
  /** Whether events carry OpenAI's own chunk as `openai_chunk`. @default false */
  readonly openaiChunk?: boolean;
  /** W3C Trace Context, whole: TRACE_CONTEXT carries the lower half of a trace's id. Not checked here. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** One request (wire description §12.1). */
export interface RequestEnvelope {
  readonly operation: string;
  /** 1 to 256 characters, chosen by the client. */
  readonly requestId?: string;
  /** OpenAI's request. */
  readonly body: JsonObject;
  readonly policy: RequestPolicy;
}

export type EnvelopeResult =
  | { readonly ok: true; readonly envelope: RequestEnvelope }
  /** `requestId` is there where it could be read. */
  | { readonly ok: false; readonly error: ProfileError; readonly requestId?: string };

const maxRequestIdLength = 256;
const maxAuthorizationLength = 8192;

/**
 * Reads a request. Never throws: what is wrong comes back as the error to answer with, its field as `param`. Unknown
 * members are ignored.
 * @param offered operations that this service has. @default those of the profile
 */
export function readEnvelope(
  input: Uint8Array | string,
  offered: { has(operation: string): boolean } = new Set<string>(operationNames),
): EnvelopeResult {
  const parsed = parseObject(input);
  if (!parsed.ok) return refusal("invalid_submit_body", `The request can't be read: ${parsed.problem}.`);
  const { schema_version: version, operation, request_id: requestId, body, nnrp } = parsed.value;
  if (version !== schemaVersion) {
    return refusal("unsupported_schema_version", `schema_version must be ${schemaVersion}.`, "schema_version");
  }
  if (requestId !== undefined && !(isNonEmptyString(requestId) && requestId.length <= maxRequestIdLength)) {
    const message = `request_id must be a text of 1 to ${maxRequestIdLength} characters.`;
    return refusal("invalid_request_id", message, "request_id");
  }
  const named = requestId === undefined ? {} : { requestId };
  const error = operationError(operation, offered) ?? policyError(nnrp) ?? bodyError(operation as string, body);
  if (error !== undefined) return { ok: false, error, ...named };
  return {
    ok: true,
    envelope: {
      operation: operation as string,
      ...named,
      body: body as JsonObject,
      policy: nnrp === undefined ? {} : toPolicy(nnrp as JsonObject),
    },
  };
}

function refusal(code: ProfileErrorCode, message: string, param?: string): EnvelopeResult {
  return { ok: false, error: profileError(code, message, param) };
}

function operationError(operation: unknown, offered: { has(name: string): boolean }): ProfileError | undefined {
  if (typeof operation === "string" && offered.has(operation)) return undefined;
  const message = isNonEmptyString(operation)
    ? "This operation is not offered here."
    : "operation must name what is asked for, such as chat.completions.create.";
  return profileError("unsupported_operation", message, "operation");
}

/** Checks of each `nnrp` member; the others are ignored. */
const policyChecks: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  timeout_ms: [isCount, "a whole number of milliseconds from 0"],
  diagnostics: [isBoolean, "true or false"],
  openai_chunk: [isBoolean, "true or false"],
  authorization: [
    (value) => isNonEmptyString(value) && value.length <= maxAuthorizationLength,
    `a text of 1 to ${maxAuthorizationLength} characters`,
  ],
  on_disconnect: [(value) => value === "cancel" || value === "continue", "cancel or continue"],
};

function isBoolean(value: unknown): boolean {
  return typeof value === "boolean";
}

function policyError(nnrp: unknown): ProfileError | undefined {
  if (nnrp === undefined) return undefined;
  if (!isJsonObject(nnrp)) return profileError("invalid_nnrp_policy", "nnrp must be an object.", "nnrp");
  for (const [name, [isRight, wanted]] of Object.entries(policyChecks)) {
    const value = nnrp[name];
    if (value !== undefined && !isRight(value)) {
      return profileError("invalid_nnrp_policy", `nnrp.${name} must be ${wanted}.`, `nnrp.${name}`);
    }
  }
  return undefined;
}

function toPolicy(nnrp: JsonObject): RequestPolicy {
  const { timeout_ms: timeoutMs, diagnostics, openai_chunk: openaiChunk, authorization } = nnrp;
  const { on_disconnect: onDisconnect, traceparent, tracestate } = nnrp;
  return {
    ...(isCount(timeoutMs) && timeoutMs > 0 ? { timeoutMs } : {}),
    ...(diagnostics === true ? { diagnostics } : {}),
    ...(openaiChunk === true ? { openaiChunk } : {}),
    ...(typeof authorization === "string" ? { authorization } : {}),
    ...(onDisconnect === "continue" || onDisconnect === "cancel" ? { onDisconnect } : {}),
    ...(typeof traceparent === "string" ? { traceparent } : {}),
    ...(typeof tracestate === "string" ? { tracestate } : {}),
  };
}

function bodyError(operation: string, body: unknown): ProfileError | undefined {
  if (!isJsonObject(body)) return profileError("invalid_body", "body must be an object.", "body");
  if (!needsModel.has(operation)) return undefined;
  if (!isNonEmptyString(body["model"])) return profileError("missing_model", "The body must name a model.", "model");
  const { messages } = body;
  if (operation === "chat.completions.create" && !(Array.isArray(messages) && messages.length > 0)) {
    return profileError("missing_messages", "The body must have messages.", "messages");
  }
  return undefined;
}

const needsModel: ReadonlySet<string> = new Set(["chat.completions.create", "responses.create", "embeddings.create"]);

/** A request as JSON text, ready for a FRAME_SUBMIT. */
export function writeEnvelope({ operation, requestId, body, policy }: RequestEnvelope): string {
  const nnrp = {
    timeout_ms: policy.timeoutMs,
    diagnostics: policy.diagnostics,
    openai_chunk: policy.openaiChunk,
    authorization: policy.authorization,
    on_disconnect: policy.onDisconnect,
    traceparent: policy.traceparent,
    tracestate: policy.tracestate,
  };
  const asksForSomething = Object.values(nnrp).some((value) => value !== undefined);
  return JSON.stringify({
    schema_version: schemaVersion,
    operation,
    request_id: requestId,
    body,
    ...(asksForSomething ? { nnrp } : {}),
  });
}
