import { type ProblemCode, problems } from "./table.ts";

/** Members of a problem beside its code and detail (LMSP §3). Absent ones do not apply. */
export interface ProblemDetails {
  /** Field of the request that is wrong, in the core's words; a door renders it in its own spelling. */
  readonly param?: string;
  readonly model?: string;
  readonly capability?: string;
  /** The limit that was hit, in the unit that `detail` names (tokens, bytes, requests). */
  readonly limit?: number;
  /** What was asked for, in the unit of `limit`. */
  readonly requested?: number;
  /** Milliseconds after which a retry can help. */
  readonly retryAfterMs?: number;
  /** Status that the backend answered, for `backend-refused`. */
  readonly backendStatus?: number;
  /** First sequence that is still kept, for `events-expired`. */
  readonly firstSequence?: number;
  /** Why a response was cancelled: `requested`, `disconnected`, `abandoned`, `superseded`, `lease-lost`. */
  readonly reason?: string;
}

/** A problem as data: what a failed Response carries and what every door renders. */
export interface Problem {
  readonly code: ProblemCode;
  /** One sentence for the person who has to act: what is wrong and what to do. */
  readonly detail: string;
  readonly details: ProblemDetails;
}

export interface CoreErrorOptions {
  /** For logs; never leaves the service. */
  readonly cause?: unknown;
  /** What logs say in place of a `detail` that quotes a runtime, which may quote a prompt or an answer. @default `detail` */
  readonly logDetail?: string;
}

/** The only error class that crosses rooms. Match on `code`. */
export class CoreError extends Error implements Problem {
  override readonly name = "CoreError";
  readonly code: ProblemCode;
  readonly details: ProblemDetails;
  /** `detail` as logs may hold it. */
  readonly logDetail: string;

  constructor(code: ProblemCode, detail: string, details: ProblemDetails = {}, options: CoreErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = details;
    this.logDetail = options.logDetail ?? detail;
  }

  get detail(): string {
    return this.message;
  }

  get problem(): Problem {
    return { code: this.code, detail: this.message, details: this.details };
  }
}

/** Turns anything caught into a CoreError; what is not one becomes `internal` with the original as `cause`. */
export function toCoreError(error: unknown): CoreError {
  if (error instanceof CoreError) return error;
  return new CoreError("internal", `${problems.internal.title}; the log tells more.`, {}, { cause: error });
}
