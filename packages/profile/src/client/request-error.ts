import type { Diagnostics } from "../diagnostics.ts";
import type { ProfileError } from "../errors.ts";

/** Who said that a request failed. */
export type FailureOrigin =
  /** The service, in a `response.error` or `response.cancelled`. */
  | "service"
  /** The service, without a word of the profile: RESULT_DROP_REASON, a refused session. */
  | "protocol"
  /** The connection or the session was lost. */
  | "connection"
  /** This side: a deadline, an illegal stream, a capability that is not advertised. */
  | "client";

export interface RequestFailure {
  readonly error: ProfileError;
  /** HTTP-like; 499 when it was cancelled. */
  readonly status: number;
  readonly origin: FailureOrigin;
  readonly requestId: string;
  /** Milliseconds to wait before trying again, where the service said so. */
  readonly retryAfterMs?: number;
  readonly diagnostics?: Diagnostics;
}

/** A request that did not end with an answer. */
export class ProfileRequestError extends Error {
  override readonly name = "ProfileRequestError";
  readonly failure: RequestFailure;

  constructor(failure: RequestFailure, options?: ErrorOptions) {
    super(failure.error.message, options);
    this.failure = failure;
  }

  get status(): number {
    return this.failure.status;
  }

  /** Such as `unsupported_model`. */
  get code(): string {
    return this.failure.error.code;
  }

  /** Such as `invalid_request_error`. */
  get type(): string {
    return this.failure.error.type;
  }

  /** The field that is wrong, where one is. */
  get param(): string | undefined {
    return this.failure.error.param;
  }
}
