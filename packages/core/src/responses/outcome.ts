import type { TerminalEvent } from "../events/response-events.ts";
import type { CoreError } from "../problems/core-error.ts";
import type { CandidateFinish, Response, ResponseStatus } from "./response.ts";

export interface Outcome {
  readonly type: TerminalEvent["type"];
  readonly status: ResponseStatus;
  readonly problem?: NonNullable<Response["problem"]>;
  readonly incompleteReason?: NonNullable<Response["incompleteReason"]>;
}

/** How a response ends: by its problem, else by how its candidates finished. */
export function outcomeOf(finishes: readonly CandidateFinish[], error: CoreError | undefined): Outcome {
  if (error !== undefined) {
    const { problem } = error;
    const isCancel = error.code === "cancelled" || error.code === "superseded";
    if (isCancel) return { type: "response.cancelled", status: "cancelled", problem };
    return { type: "response.failed", status: "failed", problem };
  }
  const hasEndedBy = (reason: string): boolean => finishes.some(({ finishReason }) => finishReason === reason);
  if (hasEndedBy("length")) return incomplete("max_tokens");
  if (hasEndedBy("content_filter")) return incomplete("content_filter");
  return { type: "response.completed", status: "completed" };
}

function incomplete(incompleteReason: NonNullable<Response["incompleteReason"]>): Outcome {
  return { type: "response.incomplete", status: "incomplete", incompleteReason };
}
