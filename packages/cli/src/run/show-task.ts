import { type AnyTaskEvent, LmspError, type LmspTask, type TaskEvent } from "@plenum/client";
import { createProgressBar } from "../progress-bar.ts";
import { dim, type Surroundings } from "../surroundings.ts";

const mebibyte = 1024 ** 2;

/**
 * Shows how far a task is, to its end.
 * @returns the task at its end.
 * @throws LmspError with its problem when it failed or was cancelled.
 */
export async function showTask(events: AsyncIterable<AnyTaskEvent>, around: Surroundings): Promise<LmspTask> {
  const bar = createProgressBar(around.errors);
  let task: LmspTask | undefined;
  let step: string | undefined;
  try {
    for await (const event of events) {
      if (!isTaskEvent(event)) continue;
      task = event.task;
      const { progress, kind } = task;
      if (progress?.total !== undefined && progress.total > 0) {
        const size = progress.unit === "bytes" ? mebibyte : 1;
        const unit = progress.unit === "bytes" ? "MiB" : progress.unit;
        const label = progress.step ?? kind;
        bar.update({ label, done: progress.done / size, total: progress.total / size, unit });
      } else if (progress?.step !== undefined && progress.step !== step) {
        step = progress.step;
        around.errors.write(dim(around.errors, `${step} …\n`));
      }
    }
  } finally {
    bar.end();
  }
  if (task === undefined) throw new LmspError({ code: "invalid-answer", detail: "The task told nothing of itself." });
  if (task.problem !== undefined) throw LmspError.fromProblem(task.problem);
  return task;
}

function isTaskEvent(event: AnyTaskEvent): event is TaskEvent {
  return event.type.startsWith("task.");
}
