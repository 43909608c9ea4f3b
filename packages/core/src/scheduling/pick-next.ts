/** Milliseconds of waiting that raise a job's priority by one. */
export const ageingMs = 30_000;

export interface Waiting<T> {
  readonly job: T;
  /** Counts up with every job. */
  readonly arrival: number;
  /** Milliseconds since the epoch. */
  readonly enqueuedAt: number;
  readonly fairnessKey: string;
  /** Counts as it is at each decision. */
  priority: number;
}

/**
 * Index of the job to start: the highest priority, then the key that has had the fewest starts, then the one that came
 * first. Waiting raises a priority by one for each `ageingMs`, but never above the highest one that waits: nothing
 * starves, and jobs of one priority stay fair however long the queue is. A list that is never empty is expected.
 */
export function pickNext<T>(
  waiting: readonly Waiting<T>[],
  served: ReadonlyMap<string, number>,
  nowMs: number,
): number {
  const highest = Math.max(...waiting.map(({ priority }) => priority));
  let best = 0;
  let bestRank: readonly number[] | undefined;
  for (const [index, { arrival, enqueuedAt, fairnessKey, priority }] of waiting.entries()) {
    const aged = Math.min(highest, priority + Math.floor((nowMs - enqueuedAt) / ageingMs));
    const rank = [-aged, served.get(fairnessKey) ?? 0, arrival];
    if (bestRank === undefined || isLess(rank, bestRank)) {
      best = index;
      bestRank = rank;
    }
  }
  return best;
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value < other;
  }
  return false;
}
