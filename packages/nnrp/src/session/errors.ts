export type NnrpErrorCode =
  /** A value given to this library is out of its range; the message names it. */
  | "invalid-argument"
  /** The carrier could not be opened, or ended before the handshake was done. */
  | "connect-failed"
  /** The carrier ended, or the connection was closed by this side. */
  | "connection-closed"
  /** The other end broke the protocol in a way that ends the connection. */
  | "protocol-error"
  /** The other end did not answer a hello, an open, a close or a cancel in time. */
  | "timeout"
  /** SESSION_OPEN was refused: `nnrpCode` and the message say why, `retryLater` whether it may work later. */
  | "session-rejected"
  /** The session is closed or closing. */
  | "session-closed"
  /** A limit of this side was reached; the message names it. */
  | "limit-reached"
  /** The peer sent ABORT for the operation. */
  | "aborted"
  /** An AbortSignal of the caller fired before anything was sent. */
  | "cancelled";

/** What this library's session side throws and reports. */
export class NnrpError extends Error {
  override readonly name = "NnrpError";
  readonly code: NnrpErrorCode;
  /** The peer's numeric code, where it sent one (`SessionErrorCode`). */
  readonly nnrpCode: number | undefined;
  /** The peer asked to come again later. */
  readonly retryLater: boolean;

  constructor(
    code: NnrpErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly nnrpCode?: number; readonly retryLater?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.nnrpCode = options.nnrpCode;
    this.retryLater = options.retryLater ?? false;
  }
}
