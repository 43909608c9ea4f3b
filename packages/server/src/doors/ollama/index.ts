import type { Door } from "../shared/door.ts";
import { renderProblem } from "./errors.ts";
import { createOperations } from "./operations.ts";

export interface OllamaDoorOptions {
  /** Version of this service, for model files. `/api/version` tells the Ollama whose API this is instead: clients compare it. */
  readonly version: string;
}

/** Ollama's API: `/api/*`, and `/` where its clients look whether it runs. */
export function createOllamaDoor({ version }: OllamaDoorOptions): Door {
  return {
    kind: "ollama",
    operations: createOperations(version),
    // Ollama's clients may send any media type, or none.
    requiresJson: false,
    owns: (path) => path === "/" || path === "/api" || path.startsWith("/api/"),
    renderProblem,
  };
}
