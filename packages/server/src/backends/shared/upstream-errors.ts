import { CoreError, type ProblemCode, type ProblemDetails } from "@plenum/core";
import { type ErrorFacts, errorFacts } from "./error-facts.ts";
import type { UpstreamAnswer } from "./upstream-call.ts";

export interface ErrorContext {
  /** Model that was asked for. */
  readonly model?: string;
}

/** An answer that is an error, as the core's problem (LMSP §3). Its message keeps what the server said, cleaned. */
export function upstreamError(answer: UpstreamAnswer, context: ErrorContext = {}): CoreError {
  const { status, headers, body, text } = answer;
  return problemOf(status, errorFacts(body, text), { ...detailsOf(context), ...retryAfter(headers) });
}

/** An error object that came within a stream of status 200. */
export function streamedError(body: unknown, context: ErrorContext = {}): CoreError {
  const facts = errorFacts(body);
  return problemOf(facts.status ?? statusOfWords(facts.words), facts, detailsOf(context));
}

/** The body is an error object, not a part of an answer. */
export function isErrorBody(body: Readonly<Record<string, unknown>>): boolean {
  const { error, object, detail, choices } = body;
  if (error !== undefined && error !== null && error !== false) return true;
  return choices === undefined && (object === "error" || typeof detail === "string");
}

interface Recognised {
  readonly code: ProblemCode;
  /** The words that show it, in the message or in type and code. */
  readonly pattern: RegExp;
  readonly details?: ProblemDetails;
  /** Statuses where the words mean this. @default any from 400 on */
  readonly statuses?: readonly number[];
}

/** Problems that have a code of their own, by what servers are known to say. First match wins. */
const recognised: readonly Recognised[] = [
  {
    code: "context-length-exceeded",
    pattern:
      /exceed_context_size|context_length_exceeded|maximum context length|(?:exceed\w*|longer than|greater than|too (?:long|large) for) (?:the |this |its )?(?:model'?s? )?(?:available |maximum )?context|input length exceeds|input is too (?:long|large)|too large to process|prompt is too long|context (?:window|size|length) (?:is )?exceeded/i,
    details: { param: "input" },
  },
  {
    code: "model-not-found",
    pattern:
      /model_not_found|\bmodel\b.{0,200}(?:not found|does not exist|doesn't exist|not available|is not loaded)|(?:unknown|no such|invalid) model|no models? (?:is |are )?loaded/is,
    details: { param: "model" },
    statuses: [400, 404, 422],
  },
  { code: "model-loading", pattern: /loading model|model is (?:still )?loading/i, statuses: [503] },
  {
    code: "unsupported-capability",
    pattern: /image input is not supported|not a multimodal model|does not support (?:image|vision)/i,
    details: { capability: "vision" },
  },
  {
    code: "unsupported-capability",
    pattern: /does not support (?:logits computation|chat)/i,
    details: { capability: "chat" },
  },
  {
    code: "unsupported-capability",
    pattern: /does not support embeddings|not an embedding model/i,
    details: { capability: "embeddings" },
  },
  { code: "unsupported-capability", pattern: /does not support tools/i, details: { capability: "tools" } },
];

const overflow = ["context-length-exceeded"];

/** What logs may hold of it: the status and single words. The message may quote a prompt, or what the model said. */
function loggable(status: number, { words }: ErrorFacts): { readonly logDetail: string } {
  const codes = words.filter((word) => /^[\w.-]{1,60}$/.test(word));
  return { logDetail: `The runtime answered ${[status, ...codes].join(" ")}.` };
}

function problemOf(status: number, facts: ErrorFacts, details: ProblemDetails): CoreError {
  if (status === 401 || status === 403) {
    return new CoreError(
      "backend-error",
      "The runtime does not accept this service's key; correct its apiKey.",
      details,
    );
  }
  const said = `${facts.words.join(" ")} ${facts.message}`;
  const known = recognised.find(
    ({ pattern, statuses }) => (statuses?.includes(status) ?? status >= 400) && pattern.test(said),
  );
  if (known !== undefined) {
    const numbers = overflow.includes(known.code) ? overflowNumbers(facts) : {};
    const all = { ...details, ...known.details, ...numbers };
    return new CoreError(known.code, sentence(facts.message, status), all, loggable(status, facts));
  }
  return byStatus(status, facts, details);
}

const refusals: readonly number[] = [400, 404, 409, 413, 422];

function byStatus(status: number, facts: ErrorFacts, details: ProblemDetails): CoreError {
  const detail = sentence(facts.message, status);
  const log = loggable(status, facts);
  if (status === 429 || status === 503) return new CoreError("overloaded", detail, details, log);
  if (status === 501) return new CoreError("unsupported-capability", detail, details, log);
  if (refusals.includes(status)) {
    const param = facts.param === undefined ? {} : { param: facts.param };
    return new CoreError("backend-refused", detail, { ...details, ...param, backendStatus: status }, log);
  }
  if (status >= 300 && status < 400) {
    return new CoreError("backend-error", "The runtime points to another address; correct its baseUrl.", details);
  }
  return new CoreError("backend-error", detail, details, log);
}

function sentence(message: string, status: number): string {
  if (message === "") return `The runtime answered ${status} without saying why.`;
  return /[.!?…]$/.test(message) ? message : `${message}.`;
}

/** Numbers of the body, or those that the message names: the context first, then the prompt. */
function overflowNumbers({ message, limit, requested }: ErrorFacts): ProblemDetails {
  const inText = {
    limit: numberIn(message, /(?:context (?:length|size|window)(?: is| of)?|batch size:?|n_ctx =?)\D{0,4}(\d+)/i),
    requested: numberIn(message, /(?:request|input|prompt|contains(?: at least)?|requested|value=)\D{0,4}(\d+)/i),
  };
  const chosen = { limit: limit ?? inText.limit, requested: requested ?? inText.requested };
  return {
    ...(chosen.limit === undefined ? {} : { limit: chosen.limit }),
    ...(chosen.requested === undefined ? {} : { requested: chosen.requested }),
  };
}

function numberIn(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** `Retry-After` in seconds or as a date, or `retry-after-ms`, as milliseconds from now. */
function retryAfter(headers: Readonly<Record<string, string>>): ProblemDetails {
  const { "retry-after-ms": ms, "retry-after": value, date } = headers;
  if (ms !== undefined && /^\d+$/.test(ms)) return { retryAfterMs: Number(ms) };
  if (value === undefined) return {};
  if (/^\d+(\.\d+)?$/.test(value)) return { retryAfterMs: Math.round(Number(value) * 1000) };
  // Against the server's own clock, so that a wrong one changes nothing.
  const wait = Date.parse(value) - Date.parse(date ?? "");
  return Number.isFinite(wait) ? { retryAfterMs: Math.max(0, wait) } : {};
}

/** Status that an error without one stands for. */
function statusOfWords(words: readonly string[]): number {
  const said = words.join(" ");
  if (/overload|rate_?limit|unavailable|too_many/i.test(said)) return 503;
  if (/not_?found/i.test(said)) return 404;
  if (/invalid|bad_?request|exceed_context/i.test(said)) return 400;
  return 500;
}

function detailsOf({ model }: ErrorContext): ProblemDetails {
  return model === undefined ? {} : { model };
}
