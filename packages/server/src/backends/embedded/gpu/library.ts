/**
 * node-llama-cpp as an engine child sees it when a GPU build was chosen: everything is the library's own, but it opens
 * that build and puts as many layers as fit onto the GPU. The engine's own code asks for the processor and stays as it is.
 */
import { type Llama, type LlamaOptions, getLlama as openLlama } from "node-llama-cpp";
import { openOnGpu } from "./open-on-gpu.ts";

export * from "node-llama-cpp";

const parameters = new URL(import.meta.url).searchParams;
const kind = parameters.get("kind") === "cuda" ? "cuda" : "vulkan";
const contextTokens = Number(parameters.get("contextTokens"));

export function getLlama(options: LlamaOptions): Promise<Llama> {
  return openOnGpu(openLlama, { kind, contextTokens }, options);
}
