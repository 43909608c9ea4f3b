/** Length of the window in milliseconds. */
export const windowMs = 60_000;
/** Amounts of so many milliseconds are kept as one, so that a window has few entries whatever its limit. */
const stepMs = 100;

interface Entry {
  /** End of its step: it leaves the window only when its latest amount would. */
  readonly atMs: number;
  amount: number;
}

/** A sum over the last 60 s. An amount leaves it at most 100 ms late, never early. */
export class SlidingWindow {
  #entries: Entry[] = [];
  #sum = 0;

  add(amount: number, nowMs: number): void {
    const atMs = endOfStep(nowMs);
    const last = this.#entries.at(-1);
    if (last?.atMs === atMs) last.amount += amount;
    else this.#entries.push({ atMs, amount });
    this.#sum += amount;
  }

  /** Takes back what was added at a moment. */
  remove(amount: number, addedAtMs: number): void {
    const entry = this.#entries.find(({ atMs }) => atMs === endOfStep(addedAtMs));
    if (entry === undefined) return;
    const removed = Math.min(entry.amount, amount);
    entry.amount -= removed;
    this.#sum -= removed;
  }

  sum(nowMs: number): number {
    this.#forget(nowMs);
    return this.#sum;
  }

  /** Milliseconds until the sum is below the limit, if nothing is added; 0 when it is. */
  untilBelow(limit: number, nowMs: number): number {
    let left = this.sum(nowMs);
    if (left < limit) return 0;
    for (const { atMs, amount } of this.#entries) {
      left -= amount;
      if (left < limit) return atMs + windowMs - nowMs;
    }
    return windowMs;
  }

  #forget(nowMs: number): void {
    let gone = 0;
    for (const { atMs, amount } of this.#entries) {
      if (atMs + windowMs > nowMs) break;
      this.#sum -= amount;
      gone += 1;
    }
    if (gone > 0) this.#entries.splice(0, gone);
  }
}

function endOfStep(ms: number): number {
  return (Math.floor(ms / stepMs) + 1) * stepMs;
}
