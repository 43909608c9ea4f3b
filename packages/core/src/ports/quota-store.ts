import type { Quota } from "../auth/principal.ts";

/** Why a quota has no room. */
export interface QuotaRefusal {
  readonly limit: "requests" | "tokens" | "concurrency";
  /** The limit's own number. */
  readonly most: number;
  /** Milliseconds until there is room; absent: not known, it depends on when running work ends. */
  readonly retryAfterMs?: number;
}

/**
 * Counts of work under quotas, together for all replicas. Windows slide: what counts is the last 60 s before each
 * moment. Every implementation runs `testQuotaStore`.
 */
export interface QuotaStore {
  /**
   * Takes a place under each limit of the quota in one step, or none at all.
   * @returns undefined when it was taken.
   */
  take(quota: Quota, nowMs: number): Promise<QuotaRefusal | undefined>;
  /** Undoes a `take` of that moment: the request was refused for another reason, so it counts nothing. */
  giveBack(key: string, takenAtMs: number): Promise<void>;
  /** The work has ended: frees its place and counts its tokens. */
  end(key: string, tokens: number, nowMs: number): Promise<void>;
}
