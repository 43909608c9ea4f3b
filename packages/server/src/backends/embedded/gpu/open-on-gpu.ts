import type { Llama, LlamaModelOptions, LlamaOptions } from "node-llama-cpp";
import type { GpuKind } from "./builds.ts";

export interface GpuPlace {
  readonly kind: GpuKind;
  /** Tokens that the context will hold in all, for which memory is left; 0: none. */
  readonly contextTokens: number;
}

/**
 * Opens the library's GPU build, whatever the options say, and has models put as many layers on the GPU as fit.
 * @param open the library's own `getLlama`
 * @throws NoBinaryFoundError when the build does not load on this machine
 */
export async function openOnGpu(
  open: (options: LlamaOptions) => Promise<Llama>,
  { kind, contextTokens }: GpuPlace,
  options: LlamaOptions,
): Promise<Llama> {
  const llama = await open({ ...options, gpu: kind });
  const loadModel = llama.loadModel.bind(llama);
  // Without the room for the context, layers would take what it needs later.
  const gpuLayers = contextTokens > 0 ? ({ fitContext: { contextSize: contextTokens } } as const) : "auto";
  return Object.assign(llama, { loadModel: (model: LlamaModelOptions) => loadModel({ ...model, gpuLayers }) });
}
