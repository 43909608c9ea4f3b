/** The right to run one thing, held by one replica at a time. */
export interface Lease {
  /** Grows with each acquisition of the same id; appends of an older epoch are refused. */
  readonly epoch: number;
  /** Calls once when another replica may have taken over. */
  onLost(listener: () => void): void;
  release(): Promise<void>;
}

export interface Leases {
  /**
   * @param after the epoch in which the thing was held last, as far as is known: the new one is above it. @default 0
   * @returns undefined when someone else holds it.
   */
  acquire(id: string, after?: number): Promise<Lease | undefined>;
}
