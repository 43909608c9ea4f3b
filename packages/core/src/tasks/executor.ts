import type { Caller } from "../auth/principal.ts";
import type { TaskKind, TaskProgress, TaskRecord } from "../ports/task-store.ts";

/** What a running task may tell and hear. */
export interface TaskContext {
  /** True: an earlier attempt was cut by a stop of the service, so what it left may be used again. */
  readonly isRestart: boolean;
  /** Aborts when the task is cancelled or the service stops; `run` then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** Call it as often as there is news: it is kept and shown at most four times a second. */
  progress(progress: TaskProgress): void;
}

/** Does the work of one kind of task (LMSP §7). The composition root registers one for each kind that the service offers. */
export interface TaskExecutor {
  readonly kind: TaskKind;
  /** Tasks of this kind that run at once; the others wait in order of acceptance. */
  readonly concurrency: number;
  /**
   * Checks a request before it is accepted. Absent: it is kept as it came.
   * @returns what the task keeps as its `request`, a JSON value.
   * @throws CoreError for what can never succeed, with the field as `param`.
   */
  accept?(request: unknown, caller: Caller): Promise<unknown> | unknown;
  /**
   * Does the work, again from wherever it can after a crash: at least once, never twice at a time.
   * @returns the task's result, a JSON value; undefined: none.
   * @throws CoreError for a failure, which ends the task.
   */
  run(record: TaskRecord, context: TaskContext): Promise<unknown>;
}
