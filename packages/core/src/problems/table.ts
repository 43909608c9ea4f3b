/**
 * The one table of problems (LMSP §3). A door renders each code in its own format; nothing else decides a status.
 */

/** Whether sending the same request again can help. `later` problems may carry `retryAfterMs`. */
export type Retry = "no" | "later";

export interface ProblemDefinition {
  /** HTTP status of the native interface. */
  readonly status: number;
  /** Short human sentence, the same for every occurrence (RFC 9457 `title`). */
  readonly title: string;
  readonly retry: Retry;
  /** Who has to act: the client, this service or its operator, or the runtime behind it. */
  readonly fault: "client" | "service" | "runtime";
}

export const problems = {
  "invalid-json": { status: 400, title: "The body is not valid JSON", retry: "no", fault: "client" },
  "invalid-request": { status: 400, title: "The request is not valid", retry: "no", fault: "client" },
  "unsupported-operation": { status: 404, title: "There is no such operation", retry: "no", fault: "client" },
  "not-found": { status: 404, title: "There is no such thing", retry: "no", fault: "client" },
  "method-not-allowed": { status: 405, title: "The method is not allowed here", retry: "no", fault: "client" },
  "unsupported-media-type": {
    status: 415,
    title: "The body's media type is not supported",
    retry: "no",
    fault: "client",
  },
  unauthorized: { status: 401, title: "A valid token is needed", retry: "no", fault: "client" },
  forbidden: { status: 403, title: "The token does not allow this", retry: "no", fault: "client" },
  "host-refused": { status: 403, title: "The Host or Origin is not allowed", retry: "no", fault: "client" },
  "model-not-found": { status: 404, title: "There is no such model", retry: "no", fault: "client" },
  "unsupported-capability": { status: 422, title: "The model can't do this", retry: "no", fault: "client" },
  "context-length-exceeded": {
    status: 400,
    title: "The prompt does not fit the model's context",
    retry: "no",
    fault: "client",
  },
  "request-too-large": { status: 413, title: "The request body is too large", retry: "no", fault: "client" },
  "invalid-output": { status: 502, title: "The answer does not fit its schema", retry: "no", fault: "runtime" },
  "idempotency-in-progress": {
    status: 409,
    title: "A request with this idempotency key is still running",
    retry: "no",
    fault: "client",
  },
  "idempotency-mismatch": {
    status: 422,
    title: "This idempotency key was used with another body",
    retry: "no",
    fault: "client",
  },
  conflict: { status: 409, title: "The thing's state does not allow this", retry: "no", fault: "client" },
  "rate-limited": { status: 429, title: "Too many requests", retry: "later", fault: "client" },
  "quota-exceeded": { status: 429, title: "The quota is used up", retry: "no", fault: "client" },
  overloaded: { status: 503, title: "The service is full", retry: "later", fault: "service" },
  draining: { status: 503, title: "The service is stopping", retry: "later", fault: "service" },
  "model-loading": { status: 503, title: "The model is still loading", retry: "later", fault: "service" },
  "insufficient-memory": { status: 507, title: "The model does not fit into memory", retry: "no", fault: "service" },
  "insufficient-storage": { status: 507, title: "There is not enough disk space", retry: "no", fault: "service" },
  "deadline-exceeded": { status: 504, title: "The deadline has passed", retry: "no", fault: "client" },
  cancelled: { status: 499, title: "The response was cancelled", retry: "no", fault: "client" },
  superseded: { status: 499, title: "A later request took this one's place", retry: "no", fault: "client" },
  "backend-unavailable": { status: 503, title: "The runtime can't be reached", retry: "later", fault: "runtime" },
  "backend-refused": { status: 400, title: "The runtime refused the request", retry: "no", fault: "client" },
  "backend-error": { status: 502, title: "The runtime failed", retry: "no", fault: "runtime" },
  interrupted: { status: 503, title: "The service stopped under this response", retry: "later", fault: "service" },
  "events-expired": { status: 410, title: "These events are no longer kept", retry: "no", fault: "client" },
  internal: { status: 500, title: "The service made a mistake", retry: "no", fault: "service" },
} as const satisfies Record<string, ProblemDefinition>;

export type ProblemCode = keyof typeof problems;

/** Every code, in the table's order. */
export const problemCodes = Object.keys(problems) as readonly ProblemCode[];
