import type { Clock } from "../ports/clock.ts";

export interface RetentionLimits {
  /** Milliseconds that a response with `store: false` can be read after its end. */
  readonly textRetentionMs: number;
  /** Milliseconds that a stored response can be read after its end. */
  readonly storedRetentionMs: number;
}

/** Forgets ended responses in time, with one timer for all. */
export class Retention {
  readonly #clock: Clock;
  readonly #limits: RetentionLimits;
  readonly #forget: (id: string) => Promise<void>;
  /** When each ended response goes, in milliseconds since the epoch. */
  readonly #expiry = new Map<string, number>();
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, limits: RetentionLimits, forget: (id: string) => Promise<void>) {
    this.#clock = clock;
    this.#limits = limits;
    this.#forget = forget;
  }

  /** Begins the retention of a response that has ended. */
  keep(id: string, isStored: boolean): void {
    const { storedRetentionMs, textRetentionMs } = this.#limits;
    this.#expiry.set(id, this.#clock.now() + (isStored ? storedRetentionMs : textRetentionMs));
    this.#stopTimer ??= this.#clock.after(this.#sweepMs, () => this.#sweep());
  }

  forget(id: string): void {
    this.#expiry.delete(id);
  }

  close(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  get #sweepMs(): number {
    return Math.max(100, Math.min(this.#limits.textRetentionMs, 5_000));
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const [id, expiresAt] of this.#expiry) {
      if (expiresAt <= now) void this.#forget(id);
    }
    const isEmpty = this.#expiry.size === 0;
    this.#stopTimer = isEmpty ? undefined : this.#clock.after(this.#sweepMs, () => this.#sweep());
  }
}
