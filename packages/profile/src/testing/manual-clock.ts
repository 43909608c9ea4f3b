import type { Clock } from "@plenum/nnrp";

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs = 1_700_000_000_000;
  readonly #timers = new Set<{ readonly atMs: number; readonly call: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(call: () => void): void {
    queueMicrotask(call);
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    for (const timer of [...this.#timers]) {
      if (timer.atMs > this.#nowMs) continue;
      this.#timers.delete(timer);
      timer.call();
    }
  }
}
