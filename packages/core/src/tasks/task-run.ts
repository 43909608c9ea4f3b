import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Observer } from "../ports/observer.ts";
import type { TaskEvent, TaskProgress, TaskRecord, TaskStore } from "../ports/task-store.ts";
import { CoreError, toCoreError } from "../problems/core-error.ts";
import type { TaskExecutor } from "./executor.ts";

/** Milliseconds between two progress events of one task: four a second (LMSP §7). */
const progressIntervalMs = 250;
/** Milliseconds before an end that could not be written is tried again: a full disk may have room then. */
const retryMs = 1_000;

export interface TaskRunOptions {
  readonly executor: TaskExecutor;
  readonly store: TaskStore;
  readonly bus: Bus;
  readonly clock: Clock;
  /** Last event that is kept already. */
  readonly lastSequence: number;
  /** True: an earlier attempt was cut. */
  readonly isRestart: boolean;
  readonly observer: Observer;
}

type KeptTask = TaskEvent["task"];

/**
 * One task from its acceptance, or from the start of the service after a stop, to its end. Whatever a reader sees is
 * committed first: events leave the store only.
 */
export class TaskRun {
  readonly #options: TaskRunOptions;
  readonly #abort = new AbortController();
  /** Without its request, which may be large and is wanted only while it runs. */
  #record: KeptTask;
  #sequence: number;
  /** Writes of this task, one after the other. */
  #writes: Promise<void> = Promise.resolve();
  #progress: TaskProgress | undefined;
  #stopTimer: (() => void) | undefined;
  #isSuspended = false;
  #hasEnded = false;

  constructor(record: TaskRecord, options: TaskRunOptions) {
    const { request: _request, ...kept } = record;
    this.#record = kept;
    this.#options = options;
    this.#sequence = options.lastSequence;
  }

  /** The task as it was written last. */
  get record(): KeptTask {
    return this.#record;
  }

  get executor(): TaskExecutor {
    return this.#options.executor;
  }

  /** Does the work to its end; resolves when that is kept. Never rejects. */
  async execute(): Promise<void> {
    const { executor, isRestart, clock } = this.#options;
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      const startedAt = clock.now();
      this.#write("task.progress", (record) => ({ ...record, state: "running", startedAt }));
      // On disk before the work: an attempt that takes the service down with it is counted.
      await this.#writes;
      const context = { isRestart, signal, progress: (progress: TaskProgress) => this.#note(progress) };
      const { request } = (await this.#options.store.get(this.#record.id)) ?? {};
      const result = await executor.run({ ...this.#record, request }, context);
      await this.#end({ state: "succeeded", ...(result === undefined ? {} : { result }) });
    } catch (error) {
      await this.#fail(signal.aborted ? signal.reason : error);
    }
  }

  /** Stops it in any state. */
  cancel(reason: string): void {
    this.#abort.abort(new CoreError("cancelled", "It was cancelled on request.", { reason }));
  }

  /** The service stops: the work is cut, and what is kept goes on at the next start. */
  suspend(): void {
    this.#isSuspended = true;
    this.#abort.abort(new CoreError("interrupted", "The service stopped before the task was done."));
  }

  /** Ends it without running. */
  async fail(error: unknown): Promise<void> {
    await this.#fail(error);
  }

  #note(progress: TaskProgress): void {
    this.#progress = progress;
    if (this.#hasEnded || this.#stopTimer !== undefined) return;
    this.#writeProgress();
    const next = (): void => {
      this.#stopTimer = undefined;
      if (this.#progress !== undefined) this.#note(this.#progress);
    };
    this.#stopTimer = this.#options.clock.after(progressIntervalMs, next);
  }

  #writeProgress(): void {
    const progress = this.#progress;
    if (progress === undefined) return;
    this.#progress = undefined;
    this.#write("task.progress", (record) => ({ ...record, progress }));
  }

  async #fail(caught: unknown): Promise<void> {
    const error = toCoreError(caught);
    if (this.#isSuspended && error.code === "interrupted") {
      this.#stopTimer?.();
      this.#hasEnded = true;
      this.#write("task.progress", (record) => ({ ...record, state: "queued" }));
      await this.#writes;
      return;
    }
    if (error.code === "internal") this.#options.observer.fault?.(error);
    await this.#end({ state: error.code === "cancelled" ? "cancelled" : "failed", problem: error.problem });
  }

  /** Writes the end, as often as it takes: a task that has run has one stored result. */
  async #end(end: Pick<TaskRecord, "state" | "result" | "problem">): Promise<void> {
    this.#stopTimer?.();
    this.#hasEnded = true;
    const { clock } = this.#options;
    await this.#writes;
    // After the writes before it, which may bring progress.
    const progress = this.#progress ?? this.#record.progress;
    const finishedAt = clock.now();
    const ended = { ...this.#record, ...(progress === undefined ? {} : { progress }), ...end, finishedAt };
    while (!(await this.#append(eventOf(end.state), ended))) {
      await new Promise<void>((resolve) => clock.after(retryMs, resolve));
    }
    this.#options.observer.taskEnded?.(ended);
  }

  /** Progress that can't be written is passed over; the next says more. */
  #write(type: TaskEvent["type"], change: (record: KeptTask) => KeptTask): void {
    this.#writes = this.#writes.then(async () => {
      await this.#append(type, change(this.#record));
    });
  }

  /** @returns false when it was not kept. */
  async #append(type: TaskEvent["type"], task: KeptTask): Promise<boolean> {
    const { store, bus, clock, observer } = this.#options;
    const sequence = this.#sequence + 1;
    try {
      await store.appendEvent({ sequence, type, atMs: Math.max(0, clock.now() - task.createdAt), task });
    } catch (error) {
      // Deleted under its run: nobody waits for its end.
      if (error instanceof CoreError && error.code === "not-found") return true;
      observer.fault?.(error);
      return false;
    }
    this.#sequence = sequence;
    this.#record = task;
    bus.publish("task.changed", task.id);
    return true;
  }
}

function eventOf(state: TaskRecord["state"]): TaskEvent["type"] {
  if (state === "succeeded") return "task.succeeded";
  return state === "cancelled" ? "task.cancelled" : "task.failed";
}
