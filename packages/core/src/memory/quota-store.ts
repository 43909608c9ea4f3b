import type { Quota } from "../auth/principal.ts";
import type { QuotaRefusal, QuotaStore } from "../ports/quota-store.ts";
import { SlidingWindow, windowMs } from "./sliding-window.ts";

interface Counts {
  readonly requests: SlidingWindow;
  readonly tokens: SlidingWindow;
  running: number;
  /** Milliseconds since the epoch. */
  usedAt: number;
}

/** Quotas of a service with one replica. What nobody uses is forgotten once its windows are empty. */
export class MemoryQuotaStore implements QuotaStore {
  readonly #counts = new Map<string, Counts>();

  async take(quota: Quota, nowMs: number): Promise<QuotaRefusal | undefined> {
    const counts = this.#of(quota.key, nowMs);
    const refusal = refusalOf(quota, counts, nowMs);
    if (refusal !== undefined) return refusal;
    counts.requests.add(1, nowMs);
    counts.running += 1;
    return undefined;
  }

  async giveBack(key: string, takenAtMs: number): Promise<void> {
    const counts = this.#counts.get(key);
    if (counts === undefined) return;
    counts.requests.remove(1, takenAtMs);
    counts.running -= 1;
  }

  async end(key: string, tokens: number, nowMs: number): Promise<void> {
    const counts = this.#of(key, nowMs);
    counts.tokens.add(tokens, nowMs);
    counts.running = Math.max(0, counts.running - 1);
  }

  /** Keys that are counted now. */
  get size(): number {
    return this.#counts.size;
  }

  #of(key: string, nowMs: number): Counts {
    let counts = this.#counts.get(key);
    if (counts === undefined) {
      this.#forgetUnused(nowMs);
      counts = { requests: new SlidingWindow(), tokens: new SlidingWindow(), running: 0, usedAt: nowMs };
      this.#counts.set(key, counts);
    }
    counts.usedAt = nowMs;
    return counts;
  }

  #forgetUnused(nowMs: number): void {
    for (const [key, { running, usedAt }] of this.#counts) {
      if (running === 0 && usedAt + 2 * windowMs < nowMs) this.#counts.delete(key);
    }
  }
}

/** Of several limits that are hit, the one that takes longest: waiting for less would not help. */
function refusalOf(quota: Quota, { requests, tokens, running }: Counts, nowMs: number): QuotaRefusal | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrency } = quota;
  const windows = [
    { limit: "requests", most: requestsPerMinute, window: requests },
    { limit: "tokens", most: tokensPerMinute, window: tokens },
  ] as const;
  let longest: (QuotaRefusal & { readonly retryAfterMs: number }) | undefined;
  for (const { limit, most, window } of windows) {
    if (most === undefined) continue;
    const retryAfterMs = window.untilBelow(most, nowMs);
    if (retryAfterMs > (longest?.retryAfterMs ?? 0)) longest = { limit, most, retryAfterMs };
  }
  if (longest !== undefined) return longest;
  if (concurrency !== undefined && running >= concurrency) return { limit: "concurrency", most: concurrency };
  return undefined;
}
