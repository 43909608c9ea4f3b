import type { ResponseRecord } from "../ports/store.ts";
import type { TaskKind, TaskRecord, TaskState } from "../ports/task-store.ts";
import type { ResponseStatus } from "../responses/response.ts";

/** A task as it is shown: a record of the task store, or a background response, which is its own task (LMSP §5, §7). */
export type Task = Omit<TaskRecord, "kind" | "fairnessKey" | "cancelRequested"> & {
  readonly kind: TaskKind | "response";
};

const stateOf: Readonly<Record<ResponseStatus, TaskState>> = {
  queued: "queued",
  in_progress: "running",
  completed: "succeeded",
  incomplete: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
};

/** Statuses that a response shown as a task in this state may have. */
export function statusesOf(state: TaskState): readonly ResponseStatus[] {
  return (Object.keys(stateOf) as ResponseStatus[]).filter((status) => stateOf[status] === state);
}

/** A background response as a task. */
export function taskOfResponse({ owner, response }: ResponseRecord): Task {
  const { id, status, problem, attempt, createdAt, startedAt, finishedAt, model } = response;
  return {
    id,
    kind: "response",
    owner,
    request: { model },
    state: stateOf[status],
    attempt,
    createdAt,
    ...(problem === undefined ? {} : { problem }),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
  };
}
