import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { TaskEvent, TaskStore } from "../ports/task-store.ts";

/** Milliseconds after which a reader looks again by itself: a notification of another replica can be lost. */
const lookAgainMs = 5_000;

export interface TaskReaderOptions {
  readonly id: string;
  readonly after: number;
  readonly store: TaskStore;
  readonly bus: Bus;
  readonly clock: Clock;
}

/** Events of one task, from the store, which is the same for every replica. */
export class TaskReader {
  readonly #options: TaskReaderOptions;
  readonly #unsubscribe: () => void;
  #place: number;
  #hasNews = true;
  #hasEnded = false;
  #wake: () => void = () => {};

  constructor(options: TaskReaderOptions) {
    this.#options = options;
    this.#place = options.after;
    this.#unsubscribe = options.bus.subscribe("task.changed", (id) => {
      if (id === options.id) this.#tell();
    });
  }

  /**
   * Waits for what comes next.
   * @returns events in order, at least one; undefined: nothing will follow, or the reader was closed.
   */
  async next(): Promise<readonly TaskEvent[] | undefined> {
    const { id, store } = this.#options;
    while (!this.#hasEnded) {
      if (!this.#hasNews) await this.#news();
      this.#hasNews = false;
      // The record first: when it had ended by then, every event was there to be read.
      const record = await store.head(id);
      const events = await store.events(id, this.#place);
      const last = events.at(-1);
      if (last === undefined) {
        if (record === undefined || record.finishedAt !== undefined) break;
        continue;
      }
      this.#place = last.sequence;
      this.#hasNews = true;
      if (last.type !== "task.progress") this.#hasEnded = true;
      return events;
    }
    this.close();
    return undefined;
  }

  close(): void {
    this.#hasEnded = true;
    this.#unsubscribe();
    this.#tell();
  }

  #tell(): void {
    this.#hasNews = true;
    this.#wake();
  }

  async #news(): Promise<void> {
    if (this.#hasEnded) return;
    let stop: () => void = () => {};
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      stop = this.#options.clock.after(lookAgainMs, resolve);
    });
    stop();
  }
}
