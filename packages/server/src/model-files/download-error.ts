/** Why a download came to nothing; the message is the end of a sentence, without addresses or keys. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  /** `refused`: it is of no use to ask again; `broken`: it may be; `mismatch`: another file came. */
  readonly kind: "refused" | "broken" | "mismatch";
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  /** Milliseconds after which the server wants to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: DownloadError["kind"],
    message: string,
    details: { readonly status?: number; readonly retryAfterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Anything caught on the way, as what it means for a further try. `fetch` hides the system's reason in `cause`. */
export function toDownloadError(error: unknown): DownloadError {
  if (error instanceof DownloadError) return error;
  if (!(error instanceof Error)) return new DownloadError("broken", String(error));
  const said = error.cause instanceof Error ? error.cause.message : error.message;
  return new DownloadError("broken", said, { cause: error });
}
