/** An error as LMSP sends it: `application/problem+json` (RFC 9457, LMSP §3). */
export interface LmspProblem {
  /** `urn:lmsp:problem:<code>` */
  readonly type: string;
  readonly title?: string;
  readonly status: number;
  readonly detail?: string;
  /** Id of the request. */
  readonly instance?: string;
  readonly param?: string;
  readonly model?: string;
  readonly capability?: string;
  readonly limit?: number;
  readonly requested?: number;
  readonly retry_after_ms?: number;
  readonly first_sequence?: number;
  readonly reason?: string;
  readonly [member: string]: unknown;
}

/** Codes of this client, beside those of the service. */
export type ClientErrorCode =
  /** No connection could be made. */
  | "unreachable"
  /** A stream broke and could not be resumed in the tries that are allowed. */
  | "connection-lost"
  /** What answered does not speak LMSP, or broke its rules. */
  | "invalid-answer";

interface LmspErrorOptions {
  readonly code: string;
  readonly detail: string;
  readonly status?: number;
  readonly problem?: LmspProblem;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** Every failure of a call but an abort, which rejects with the signal's reason. Match on `code`. */
export class LmspError extends Error {
  override readonly name = "LmspError";
  /** Code of the problem table (LMSP §3), or a `ClientErrorCode`. */
  readonly code: string;
  /** HTTP status; 0: there was no answer. */
  readonly status: number;
  /** One sentence: what is wrong and what to do. */
  readonly detail: string;
  /** Milliseconds after which trying again can help; absent: not known. */
  readonly retryAfterMs?: number;
  /** All members that the service sent. */
  readonly problem?: LmspProblem;

  constructor(options: LmspErrorOptions) {
    super(options.detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.detail = options.detail;
    this.status = options.status ?? 0;
    if (options.problem !== undefined) this.problem = options.problem;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }

  /** The error that a failed or cancelled response carries in `problem`. */
  static fromProblem(problem: LmspProblem, retryAfterMs: number | undefined = problem.retry_after_ms): LmspError {
    return new LmspError({
      code: problem.type.replace(/^urn:lmsp:problem:/, ""),
      status: problem.status,
      detail: problem.detail ?? problem.title ?? `The service answered ${problem.status}.`,
      problem,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
}

/** Reads the error out of an answer that is not 2xx. */
export async function readError(answer: Response): Promise<LmspError> {
  const text = await answer.text().catch(() => "");
  const retryAfterMs = readRetryAfter(answer.headers.get("retry-after"));
  const problem = parseProblem(text, answer.status);
  if (problem !== undefined) return LmspError.fromProblem(problem, problem.retry_after_ms ?? retryAfterMs);
  const excerpt = text.replace(/\s+/g, " ").slice(0, 200);
  return new LmspError({
    code: "invalid-answer",
    status: answer.status,
    detail: `${answer.url || "The service"} answered ${answer.status} without an LMSP problem: ${excerpt || "(no text)"}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/**
 * The problem in a JSON text, or undefined when it is none.
 * @param status of the answer, for a problem that does not say it.
 */
export function parseProblem(text: string, status = 0): LmspProblem | undefined {
  if (!text.includes("urn:lmsp:problem:")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("type" in value) || typeof value.type !== "string") {
      return undefined;
    }
    if (!value.type.startsWith("urn:lmsp:problem:")) return undefined;
    return { status, ...value, type: value.type };
  } catch {
    // Not JSON: a proxy or another program answered. The caller shows what it said.
    return undefined;
  }
}

/** Milliseconds of a Retry-After header: seconds or a date (RFC 9110 §10.2.3). */
function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
