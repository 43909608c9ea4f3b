import type { Clock } from "../ports/clock.ts";

export interface RetentionLimits {
  /** Milliseconds that a response with `store: false` can be read after its end. */
  readonly textRetentionMs: number;
  /** Milliseconds that a stored response can be read after its end. */
  readonly storedRetentionMs: number;
  /** Bytes of all requests and outputs; past it the oldest ended ones go, and running ones that fill it leave no room. */
  readonly recordBytesTotal: number;
}

/** Which responses are kept: by time after their end, with one timer for all, and by bytes in total. */
export class Retention {
  readonly #clock: Clock;
  readonly #limits: RetentionLimits;
  readonly #forget: (id: string) => void;
  readonly #bytes = new Map<string, number>();
  /** When each ended response goes, in milliseconds since the epoch; in order of their ends. */
  readonly #ended = new Map<string, number>();
  #total = 0;
  #stopTimer: (() => void) | undefined;

  /** @param forget told of each response that goes. */
  constructor(clock: Clock, limits: RetentionLimits, forget: (id: string) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#forget = forget;
  }

  /** Makes room by dropping ended responses, oldest first. @returns false when running ones alone leave none. */
  makeRoom(bytes: number): boolean {
    const { recordBytesTotal } = this.#limits;
    for (const id of this.#ended.keys()) {
      if (this.#total + bytes <= recordBytesTotal) break;
      this.#drop(id);
    }
    // One that is larger than the budget by itself is still taken when nothing else is there.
    return this.#total + bytes <= recordBytesTotal || this.#bytes.size === 0;
  }

  /** Counts a response that was accepted. */
  hold(id: string, bytes: number): void {
    this.#bytes.set(id, bytes);
    this.#total += bytes;
  }

  /** Begins the retention of a response that has ended. @param outputBytes what its answer adds */
  keep(id: string, isStored: boolean, outputBytes: number): void {
    const { storedRetentionMs, textRetentionMs } = this.#limits;
    this.#bytes.set(id, (this.#bytes.get(id) ?? 0) + outputBytes);
    this.#total += outputBytes;
    this.#ended.set(id, this.#clock.now() + (isStored ? storedRetentionMs : textRetentionMs));
    this.#stopTimer ??= this.#clock.after(this.#sweepMs, () => this.#sweep());
    this.makeRoom(0);
  }

  /** It is gone already. */
  release(id: string): void {
    this.#total -= this.#bytes.get(id) ?? 0;
    this.#bytes.delete(id);
    this.#ended.delete(id);
  }

  /** Bytes counted now. */
  get bytes(): number {
    return this.#total;
  }

  close(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #drop(id: string): void {
    this.release(id);
    this.#forget(id);
  }

  get #sweepMs(): number {
    return Math.max(100, Math.min(this.#limits.textRetentionMs, 5_000));
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const [id, expiresAt] of this.#ended) if (expiresAt <= now) this.#drop(id);
    const isEmpty = this.#ended.size === 0;
    this.#stopTimer = isEmpty ? undefined : this.#clock.after(this.#sweepMs, () => this.#sweep());
  }
}
