/** What a key stands for (LMSP §5). */
export interface IdempotencyRecord {
  /** Principal, door and the client's key, joined so that none can be mistaken for another. */
  readonly key: string;
  /** SHA-256 of the request's body. */
  readonly bodySha256: string;
  /** The response or task that the first request made. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Where idempotency keys are kept. Every implementation runs `testIdempotencyStore`. */
export interface IdempotencyStore {
  /** Takes a free or expired key, in one step. @returns the record that holds it already, undefined when it was free. */
  claim(record: IdempotencyRecord, nowMs: number): Promise<IdempotencyRecord | undefined>;
  /** Frees a key that this id holds: what failed before it started is not kept. Another's stays. */
  release(key: string, id: string): Promise<void>;
  sweep(nowMs: number): Promise<void>;
}
