/** One payload of a FRAME_SUBMIT's or RESULT_PUSH's body. */
export interface TypedPayload {
  /** `StandardProfile`; 0 for `openai-compatible/1`, 2 for token chunks. Never 1 (tensor). */
  readonly profileId: number;
  /** One bit of `PayloadKind`, never `tensor`. */
  readonly kind: number;
  /** Bits: 1 terminal, 2 partial, 4 schema override, 8 profile hint. */
  readonly flags: number;
  readonly schemaId: number;
  readonly schemaVersion: number;
  /** `StreamSemantics`; unlisted values are passed through. */
  readonly streamSemantics: number;
  /** A view into the packet that was received. */
  readonly bytes: Uint8Array;
}
