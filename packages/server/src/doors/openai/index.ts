import type { Door } from "../shared/door.ts";
import { chatOperations } from "./chat/operations.ts";
import { completionOperations } from "./completions/operations.ts";
import { embeddingOperations } from "./embeddings/operations.ts";
import { renderProblem } from "./errors.ts";
import { modelOperations } from "./models/operations.ts";
import { responsesOperations } from "./responses/operations.ts";

/** OpenAI's API under `/v1`, for every client that speaks it. */
export function createOpenaiDoor(): Door {
  return {
    kind: "openai",
    operations: [
      ...modelOperations,
      ...chatOperations,
      ...responsesOperations,
      ...embeddingOperations,
      ...completionOperations,
    ],
    requiresJson: true,
    owns: (path) => path === "/v1" || path.startsWith("/v1/"),
    renderProblem,
  };
}
