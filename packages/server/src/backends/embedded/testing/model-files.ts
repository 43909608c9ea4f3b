/** Where tests find real models. Not for the service. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../../../../../", import.meta.url));

/**
 * SmolLM2-135M-Instruct: the file that `PLENUM_TEST_STARTER_MODEL` names, else the one in the checkout's `.cache/models`.
 * @throws Error that says how to get it
 */
export function chatModelFile(): string {
  const { PLENUM_TEST_STARTER_MODEL: named } = process.env;
  const cached = join(repository, ".cache", "models", "smollm2-135m-instruct-q4_1.gguf");
  return firstExisting([...(named === undefined ? [] : [named]), cached], "`npm test` fetches it.");
}

/**
 * The embedding model all-MiniLM-L6-v2, in the folder that `PLENUM_TEST_MODELS` names.
 * @default folder `../shared/models` beside the checkout
 * @throws Error that says what to set
 */
export function embeddingModelFile(): string {
  const folder = process.env["PLENUM_TEST_MODELS"] ?? resolve(repository, "../shared/models");
  return firstExisting(
    [join(folder, "all-minilm-l6-v2-f16.gguf")],
    "Set PLENUM_TEST_MODELS to the folder that holds it.",
  );
}

function firstExisting(paths: readonly string[], advice: string): string {
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error(`TEST MODEL MISSING: none of ${paths.join(", ")} exists. ${advice}`);
}

/** Why tests with real models can't run; undefined when they can. Such tests are skipped, and it is said loudly. */
export const missingModels: string | undefined = missing();

function missing(): string | undefined {
  try {
    chatModelFile();
    embeddingModelFile();
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`!!! TESTS WITH REAL MODELS ARE SKIPPED. ${reason}\n`);
    return reason;
  }
}
