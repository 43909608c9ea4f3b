import { type Capability, type CoreError, type Problem, type ProblemCode, problems } from "@plenum/core";
import type { DoorRequest, RenderedProblem } from "../shared/door.ts";
import { OllamaRefusal } from "./refusal.ts";

interface ErrorRendering {
  /** HTTP status; `backend`: the status that the backend answered. */
  readonly status: number | "backend";
  /** Ollama's own words where they are fixed; absent: the problem's detail. */
  readonly text?: (problem: Problem, path: string) => string;
  /** `plain`: the words as text; `empty`: no body; absent: `{"error": …}`. */
  readonly form?: "plain" | "empty";
}

const asProblem = (code: ProblemCode): ErrorRendering => ({ status: problems[code].status });

/** How this door shows each problem (LMSP §3). Total: a code without a rendering does not compile. */
export const errorRenderings = {
  "invalid-json": { status: 400 },
  "invalid-request": { status: 400 },
  "unsupported-operation": { status: 404, text: () => "404 page not found", form: "plain" },
  "not-found": { status: 404 },
  "method-not-allowed": { status: 405, text: () => "405 method not allowed", form: "plain" },
  "unsupported-media-type": { status: 415 },
  unauthorized: { status: 401 },
  forbidden: { status: 403 },
  "host-refused": { status: 403, form: "empty" },
  "model-not-found": { status: 404, text: modelNotFound },
  "unsupported-capability": { status: 400, text: unsupportedCapability },
  "context-length-exceeded": {
    status: 400,
    text: ({ detail }) => `the input length exceeds the context length: ${detail}`,
  },
  "request-too-large": asProblem("request-too-large"),
  "invalid-output": { status: 500 },
  "idempotency-in-progress": asProblem("idempotency-in-progress"),
  "idempotency-mismatch": asProblem("idempotency-mismatch"),
  conflict: asProblem("conflict"),
  "rate-limited": asProblem("rate-limited"),
  "quota-exceeded": asProblem("quota-exceeded"),
  overloaded: { status: 503, text: () => "server busy, please try again.  maximum pending requests exceeded" },
  draining: asProblem("draining"),
  "model-loading": asProblem("model-loading"),
  "insufficient-memory": { status: 500 },
  "insufficient-storage": { status: 500 },
  "deadline-exceeded": asProblem("deadline-exceeded"),
  cancelled: asProblem("cancelled"),
  superseded: asProblem("superseded"),
  "backend-unavailable": asProblem("backend-unavailable"),
  "backend-refused": { status: "backend" },
  "backend-error": { status: 500 },
  interrupted: asProblem("interrupted"),
  "events-expired": asProblem("events-expired"),
  internal: { status: 500 },
} as const satisfies Record<ProblemCode, ErrorRendering>;

/** Paths of the real Ollama that make models; they are answered in its error format, which its clients show. */
const managementPath = /^\/api\/(push|create|blobs\/.*)$/;

/** Words for a problem, early or as the last line of a stream. */
export function errorText(problem: Problem, path: string): string {
  const rendering: ErrorRendering = errorRenderings[problem.code];
  return rendering.text?.(problem, path) ?? problem.detail;
}

/** An error before the answer has started. */
export function renderProblem(error: CoreError, request: DoorRequest): RenderedProblem {
  const { form }: ErrorRendering = errorRenderings[error.code];
  const isMissing = error.code === "unsupported-operation" || error.code === "method-not-allowed";
  if (isMissing && managementPath.test(request.path)) {
    return json(404, headersOf(error), `${request.path} is not offered by this service: it makes no models.`);
  }
  const status = statusOf(error);
  if (form === "empty") return { status, headers: {}, body: "" };
  const text = isMissingBody(error, request) ? "missing request body" : errorText(error, request.path);
  if (form === "plain") return { status, headers: { ...headersOf(error), "content-type": "text/plain" }, body: text };
  return json(status, headersOf(error), text);
}

/** Status of a problem on this door. */
export function statusOf(error: CoreError): number {
  if (error instanceof OllamaRefusal) return error.status;
  const { status } = errorRenderings[error.code];
  return status === "backend" ? (error.details.backendStatus ?? problems["backend-refused"].status) : status;
}

function json(status: number, headers: Readonly<Record<string, string>>, error: string): RenderedProblem {
  const body = JSON.stringify({ error });
  return { status, headers: { ...headers, "content-type": "application/json; charset=utf-8" }, body };
}

function headersOf({ code, details }: CoreError): Record<string, string> {
  const { retryAfterMs, reason } = details;
  return {
    ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) }),
    ...(code === "method-not-allowed" && reason ? { allow: reason } : {}),
    ...(code === "unauthorized" ? { "www-authenticate": "Bearer" } : {}),
  };
}

function isMissingBody({ code }: CoreError, { body }: DoorRequest): boolean {
  return code === "invalid-json" && body.length === 0;
}

/** Clients look for these words: some pull the model then. */
function modelNotFound({ details, detail }: Problem, path: string): string {
  if (details.model === undefined) return detail;
  const isEmbedding = path === "/api/embed" || path === "/api/embeddings";
  return isEmbedding
    ? `model "${details.model}" not found, try pulling it first`
    : `model '${details.model}' not found`;
}

/** Ollama's word for each capability, by the core's name of it in a problem. */
const capabilityWords: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    chat: "chat",
    completion: "generate",
    embeddings: "embeddings",
    tools: "tools",
    structured_output: "format",
    reasoning: "thinking",
    vision: "images",
    logprobs: "logprobs",
    insert: "insert",
  } satisfies Record<Exclude<Capability, "structuredOutput"> | "structured_output", string>),
);

/** Clients look for "does not support" and the word. */
function unsupportedCapability({ details, detail }: Problem, path: string): string {
  const word = capabilityWords.get(details.capability ?? "");
  if (word === undefined || details.model === undefined) return detail;
  return `"${details.model}" does not support ${word === "chat" && path === "/api/generate" ? "generate" : word}`;
}
