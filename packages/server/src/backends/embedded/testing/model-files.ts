/** Where tests find real models. Not for the service. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../../../../../", import.meta.url));

/**
 * SmolLM2-135M-Instruct, in the models folder of `PLENUM_HOME` or in the checkout's `.cache/models`.
 * @throws Error that says how to get it
 */
export function chatModelFile(): string {
  const { PLENUM_HOME: home } = process.env;
  const folders = [...(home === undefined ? [] : [join(home, "models")]), join(repository, ".cache", "models")];
  return firstExisting(
    folders.map((folder) => join(folder, "smollm2-135m-instruct-q4_1.gguf")),
    "`npm test` fetches it; so does a first `npm start`.",
  );
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
