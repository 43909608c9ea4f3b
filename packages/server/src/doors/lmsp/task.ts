import type { Task, TaskEvent } from "@plenum/core";
import { compact } from "../shared/compact.ts";
import { toProblemBody } from "./errors.ts";
import { toInstant } from "./response.ts";

/** A task in the native interface's words (LMSP §7). */
export function toWireTask(task: Omit<Task, "request"> & { readonly request?: unknown }): Record<string, unknown> {
  return compact({
    id: task.id,
    object: "task",
    kind: task.kind,
    state: task.state,
    progress: task.progress,
    // Of a batch, its lines are large and were sent by who reads this.
    request: task.kind === "batch" ? undefined : (task.request ?? undefined),
    result: task.result,
    problem: task.problem && toProblemBody(task.problem),
    attempt: task.attempt,
    created_at: toInstant(task.createdAt),
    started_at: toInstant(task.startedAt),
    finished_at: toInstant(task.finishedAt),
  });
}

/** An event of a task, as its stream carries it. */
export function renderTaskEvent({ sequence, type, atMs, task }: TaskEvent): string {
  const data = JSON.stringify({ type, sequence, at_ms: atMs, task: toWireTask(task) });
  return `id: ${sequence}\nevent: ${type}\ndata: ${data}\n\n`;
}
