import type { Problem } from "../problems/core-error.ts";
import type { Page } from "./store.ts";

/** Kinds of work that is no response: a background response is kept by the `Store` and is its own task (LMSP §5, §7). */
export type TaskKind = "model.pull" | "model.load" | "model.unload" | "batch";

export type TaskState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

export interface TaskProgress {
  readonly done: number;
  /** Absent: not known yet. */
  readonly total?: number;
  readonly unit: "bytes" | "items" | "tokens";
  /** What is being done, for a person to read. */
  readonly step?: string;
  /** `sha256:<hex>` of the file that is being fetched, where its source tells it. */
  readonly digest?: string;
}

/** A piece of work that outlives its request (LMSP §7). `request` and `result` are JSON values of the kind. */
export interface TaskRecord {
  /** `task_<x>`. */
  readonly id: string;
  readonly kind: TaskKind;
  /** Principal's id. */
  readonly owner: string;
  readonly fairnessKey: string;
  readonly request: unknown;
  readonly state: TaskState;
  readonly progress?: TaskProgress;
  readonly result?: unknown;
  readonly problem?: Problem;
  /** 1, and one more for each run after a crash. */
  readonly attempt: number;
  /** Milliseconds since the epoch, as the next two. */
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  /** Set before the notification, so that a cancel can't be lost. */
  readonly cancelRequested?: string;
}

/** Numbered from 1 without a gap; a number that was read is never given to other data. */
export interface TaskEvent {
  readonly sequence: number;
  readonly type: "task.progress" | "task.succeeded" | "task.failed" | "task.cancelled";
  /** Milliseconds since the task's `createdAt`. */
  readonly atMs: number;
  /** The task as it was then; its request, which may be large and never changes, is not repeated. */
  readonly task: Omit<TaskRecord, "request">;
}

export interface TaskQuery {
  /** Absent: everyone's. */
  readonly owner?: string;
  readonly kind?: TaskKind;
  readonly state?: TaskState;
  /** Most entries, 1 … 1000. */
  readonly limit: number;
  /** A page's `nextCursor`, `<createdAt>-<id>` of its last entry, as in the store of responses. */
  readonly cursor?: string;
}

/** One finished line of a batch. */
export interface BatchLine {
  /** From 0, in the order of the input. */
  readonly index: number;
  /** JSON text of the output line, without a line break. */
  readonly text: string;
}

/**
 * Where tasks are kept. A promise that resolved means: it survives a crash. Every implementation runs `testTaskStore`.
 */
export interface TaskStore {
  /** A cancel that was asked for stays, whatever the record says. */
  put(record: TaskRecord): Promise<void>;
  get(id: string): Promise<TaskRecord | undefined>;
  /** For a look: a request of more than 8 KiB, such as the lines of a batch, may be null. */
  head(id: string): Promise<TaskRecord | undefined>;
  /** Newest first, as `head` gives them. @throws CoreError invalid-request for a cursor that no page gave. */
  list(query: TaskQuery): Promise<Page<TaskRecord>>;
  /** Tasks that were queued or running, oldest first, as `head` gives them: after a crash they go on. */
  unfinished(): Promise<readonly TaskRecord[]>;
  /** @returns false when there is no such record. The first reason stays. */
  requestCancel(id: string, reason: string): Promise<boolean>;
  /** With its events and lines. */
  delete(id: string): Promise<void>;
  /**
   * Appends an event together with the task's new state; the record's request stays.
   * @throws CoreError conflict when its number is not the next one; not-found when there is no such task.
   */
  appendEvent(event: TaskEvent): Promise<void>;
  /** Events after a sequence. */
  events(id: string, after: number): Promise<readonly TaskEvent[]>;
  /** Keeps a finished line of a batch; a line that is there stays as it is. @throws CoreError not-found */
  putLine(id: string, line: BatchLine): Promise<void>;
  /** Finished lines from an index on, in order, at most `limit`. */
  lines(id: string, from: number, limit: number): Promise<readonly BatchLine[]>;
  /** Indices of the finished lines. */
  finishedLines(id: string): Promise<ReadonlySet<number>>;
  /** Deletes what ended before the instant (milliseconds since the epoch). @returns the ids. */
  sweep(endedBefore: number): Promise<readonly string[]>;
}
