import { type Clock, detach } from "@plenum/core";
import type { DatabaseThread } from "./database-thread.ts";

export interface UpkeepOptions {
  /** Milliseconds that a stored response and its events are kept after its end. */
  readonly responseRetentionMs: number;
  /** Milliseconds that a background response, which is a task, is kept after its end. */
  readonly taskRetentionMs: number;
  readonly clock: Clock;
  /** Milliseconds that pass, whatever the clock does. */
  readonly elapsedMs: () => number;
  /** Told what the database has let go. */
  readonly onForgotten: (ids: readonly string[]) => void;
}

const everyMs = 10_000;
/** A difference between the clock and the time that passed from which on it is a jump. */
const jumpMs = 30_000;

/** Retention, the size cap and the file's size, looked after while the service runs. */
export class Upkeep {
  readonly #thread: DatabaseThread;
  readonly #options: UpkeepOptions;
  #stop: (() => void) | undefined;
  /** The clock and the time that passed, at the last look. */
  #last: { readonly now: number; readonly elapsed: number };

  constructor(thread: DatabaseThread, options: UpkeepOptions) {
    this.#thread = thread;
    this.#options = options;
    this.#last = this.#look();
    this.#later();
  }

  close(): void {
    this.#stop?.();
  }

  /** One round. @throws CoreError insufficient-storage, internal. */
  async sweep(): Promise<void> {
    await this.#heedClock();
    const { clock, responseRetentionMs: eventMs, taskRetentionMs: taskMs, onForgotten } = this.#options;
    let gone: readonly string[];
    do {
      gone = await this.#thread.call("responses.sweep", { now: clock.now(), eventMs, taskMs });
      if (gone.length > 0) onForgotten(gone);
    } while (gone.length >= 500);
    const evicted = await this.#thread.call("upkeep.size", undefined);
    if (evicted.length > 0) onForgotten(evicted);
    await this.#thread.call("upkeep.vacuum", undefined);
  }

  /** A clock that is put forward ends no retention, nor does one that is put back lengthen it by as much. */
  async #heedClock(): Promise<void> {
    const before = this.#last;
    this.#last = this.#look();
    const { now } = this.#last;
    const jumpedMs = now - before.now - (this.#last.elapsed - before.elapsed);
    if (Math.abs(jumpedMs) < jumpMs) return;
    await this.#thread.call("upkeep.clock", { now, jumpedMs: Math.max(0, jumpedMs) });
  }

  #look(): { now: number; elapsed: number } {
    return { now: this.#options.clock.now(), elapsed: this.#options.elapsedMs() };
  }

  #later(): void {
    this.#stop = this.#options.clock.after(everyMs, () => {
      // A fault is told by the thread itself.
      detach(this.sweep(), undefined);
      this.#later();
    });
  }
}
