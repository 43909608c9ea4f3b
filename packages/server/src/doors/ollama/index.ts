import type { Door } from "../shared/door.ts";
import { defaults } from "./defaults.ts";
import { renderProblem } from "./errors.ts";
import { createOperations } from "./operations.ts";

export interface OllamaDoorOptions {
  /** Ollama's version that `/api/version` tells; clients compare it with what they need. @default "0.17.4" */
  readonly version?: string;
}

/** Ollama's API: `/api/*`, and `/` where its clients look whether it runs. */
export function createOllamaDoor({ version = defaults.version }: OllamaDoorOptions = {}): Door {
  return {
    kind: "ollama",
    operations: createOperations(version),
    // Ollama's clients may send any media type, or none.
    requiresJson: false,
    owns: (path) => path === "/" || path === "/api" || path.startsWith("/api/"),
    renderProblem,
  };
}
