import type { TerminalEvent } from "../events/response-events.ts";
import type { CoreError } from "../problems/core-error.ts";
import type { Response } from "./response.ts";

interface Outcome {
  readonly type: TerminalEvent["type"];
  readonly changes: Partial<Response>;
}

/** How a response ends: by its problem, else by how its candidates finished. */
export function outcomeOf(response: Response, error: CoreError | undefined): Outcome {
  if (error !== undefined) {
    const isCancel = error.code === "cancelled" || error.code === "superseded";
    return {
      type: isCancel ? "response.cancelled" : "response.failed",
      changes: { status: isCancel ? "cancelled" : "failed", problem: error.problem },
    };
  }
  const reasons = response.finishes.map((finish) => finish.finishReason);
  if (reasons.includes("length")) {
    return {
      type: "response.incomplete",
      changes: { status: "incomplete", incompleteReason: "max_tokens" },
    };
  }
  if (reasons.includes("content_filter")) {
    return {
      type: "response.incomplete",
      changes: { status: "incomplete", incompleteReason: "content_filter" },
    };
  }
  return { type: "response.completed", changes: { status: "completed" } };
}
