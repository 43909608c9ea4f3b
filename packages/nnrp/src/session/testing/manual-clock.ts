import type { Clock } from "../clock.ts";

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<{ readonly at: number; readonly call: () => void }>();

  now(): number {
    return this.#now;
  }

  after(delayMs: number, call: () => void): () => void {
    const timer = { at: this.#now + delayMs, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(call: () => void): void {
    queueMicrotask(call);
  }

  /** Moves on, step by step from timer to timer. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.call();
    }
    this.#now = end;
  }
}
