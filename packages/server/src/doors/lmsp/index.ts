import type { Door } from "../shared/door.ts";
import { renderProblem } from "./errors.ts";
import { createOperations } from "./operations/index.ts";
import type { ServiceFacts } from "./service-document.ts";

export { toBatchLine } from "./batch-lines.ts";
export type { Asker, InterfaceEntry, ServiceFacts } from "./service-document.ts";

/** The native interface. */
export function createLmspDoor(facts: ServiceFacts): Door {
  return {
    kind: "lmsp",
    operations: createOperations(facts),
    requiresJson: true,
    owns: (path) => path === "/lmsp" || path.startsWith("/lmsp/") || path.startsWith("/.well-known/lmsp"),
    renderProblem: (error, request) => renderProblem(error, request.requestId),
  };
}
