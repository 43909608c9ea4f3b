/**
 * node-llama-cpp as an engine child sees it when a GPU build was chosen: everything is the library's own, but it opens
 * that build and puts as many layers as fit onto the GPU. The engine's own code asks for the processor and stays as it is.
 */
import { type Llama, type LlamaModelOptions, type LlamaOptions, getLlama as openLlama } from "node-llama-cpp";
import type { GpuKind } from "./builds.ts";

export * from "node-llama-cpp";

const parameters = new URL(import.meta.url).searchParams;
const kind: GpuKind = parameters.get("kind") === "cuda" ? "cuda" : "vulkan";
const contextTokens = Number(parameters.get("contextTokens"));

/** @throws NoBinaryFoundError when the build does not load on this machine */
export async function getLlama(options: LlamaOptions): Promise<Llama> {
  const llama = await openLlama({ ...options, gpu: kind });
  const loadModel = llama.loadModel.bind(llama);
  return Object.assign(llama, {
    loadModel: (model: LlamaModelOptions) =>
      // Leaves room for the context: without it, layers would take what the context needs later.
      loadModel({ ...model, gpuLayers: contextTokens > 0 ? { fitContext: { contextSize: contextTokens } } : "auto" }),
  });
}
