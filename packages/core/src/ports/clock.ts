/** Time, so that tests can drive it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Calls once after `delayMs`, or earlier when no timer holds so long a delay; the returned function cancels it. Never
   * keeps a process alive.
   */
  after(delayMs: number, call: () => void): () => void;
}
