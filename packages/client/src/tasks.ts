import type { LmspEvent } from "./events.ts";
import type { LmspProblem } from "./problem.ts";
import type { ResponseRequest } from "./responses.ts";

/** Body of `POST /lmsp/v1/tasks` (LMSP §7). */
export type TaskRequest =
  | { readonly kind: "response"; readonly request: ResponseRequest }
  /** @param source `hf:owner/repo[:quant]`, `ollama:name`, an https URL, a file or folder of the service's machine, or `starter` */
  | { readonly kind: "model.pull"; readonly source: string; readonly sha256?: string }
  | { readonly kind: "model.load"; readonly model: string; readonly keep_alive?: number | string }
  | { readonly kind: "model.unload"; readonly model: string }
  /** Lines as JSON Lines text, or as values: `{custom_id?, request}`, or a request by itself. */
  | { readonly kind: "batch"; readonly requests: string | readonly unknown[] };

export type TaskKind = TaskRequest["kind"];

export type TaskState = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** A piece of work that outlives its request, also a crash of the service. A background response is one by its own id. */
export interface LmspTask {
  readonly id: string;
  readonly kind: TaskKind;
  readonly state: TaskState;
  readonly progress?: {
    readonly done: number;
    /** Absent: not known yet. */
    readonly total?: number;
    readonly unit: "bytes" | "items" | "tokens";
    /** What is being done, for a person to read. */
    readonly step?: string;
  };
  /** JSON value of the kind. */
  readonly result?: unknown;
  /** Why it `failed` or was `cancelled`. */
  readonly problem?: LmspProblem;
  /** 1, and one more for each run after a crash. */
  readonly attempt: number;
  /** RFC 3339, as are the others. */
  readonly created_at: string;
  readonly started_at?: string;
  readonly finished_at?: string;
}

/** An event of a task that is no response. */
export interface TaskEvent {
  readonly type: "task.progress" | "task.succeeded" | "task.failed" | "task.cancelled";
  /** From 1, without gap. */
  readonly sequence: number;
  /** Milliseconds since the task's `created_at`. */
  readonly at_ms: number;
  readonly task: LmspTask;
}

/** Events of a task: its own, or those of the response that it is. */
export type AnyTaskEvent = TaskEvent | LmspEvent;

/** Filters of `GET /lmsp/v1/tasks`; without the scope `admin`, own ones only. */
export interface ListTasksOptions {
  readonly kind?: TaskKind;
  readonly state?: TaskState;
  /** Things on one page. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Whether the task's stream ends with this event. */
export function isLastTaskEvent(event: AnyTaskEvent): boolean {
  return /^(task\.(succeeded|failed|cancelled)|response\.(completed|incomplete|failed|cancelled))$/.test(event.type);
}

/** Whether nothing more will happen to the task. */
export function hasEnded({ state }: LmspTask): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}
