/** What is wrong with bytes. */
export type WireErrorCode =
  /** The common header: magic, version, wire format, header length, flags. The stream cannot be read on. */
  | "bad-header"
  /** A message type that NNRP 1 does not assign. The stream cannot be read on. */
  | "unknown-type"
  /** A declared length is over the limit. The stream cannot be read on. */
  | "too-large"
  /** A message carrier's message is not exactly one packet. The stream cannot be read on. */
  | "bad-message"
  /** Metadata of another length than its message has. */
  | "bad-metadata-length"
  /** A field out of its range, an unknown flag, a reserved field that is not 0. */
  | "bad-field"
  /** The body's length is not what the metadata says. */
  | "bad-body-length"
  /** The regions or descriptors of a body do not fit. */
  | "bad-body"
  /** A value to be encoded does not fit its field. */
  | "bad-value";

/** Bytes or values that NNRP 1 does not allow. The message names the field, never its content's text. */
export class NnrpWireError extends Error {
  override readonly name = "NnrpWireError";
  readonly code: WireErrorCode;
  /** The field's name, where one is to blame. */
  readonly field: string | undefined;
  /** Nothing after these bytes can be read. */
  readonly fatal: boolean;

  constructor(code: WireErrorCode, message: string, field?: string) {
    super(message);
    this.code = code;
    this.field = field;
    this.fatal = code === "bad-header" || code === "unknown-type" || code === "too-large" || code === "bad-message";
  }
}
