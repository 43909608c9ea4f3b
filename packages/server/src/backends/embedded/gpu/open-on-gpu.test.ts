import type { Llama } from "node-llama-cpp";
import { expect, test } from "vitest";
import { openOnGpu } from "./open-on-gpu.ts";

test.each([
  ["cuda", 8192, { fitContext: { contextSize: 8192 } }],
  ["vulkan", 0, "auto"],
] as const)(
  "%s: the engine, which asks for the processor, gets the GPU and layers on it",
  async (kind, contextTokens, gpuLayers) => {
    const seen: unknown[] = [];
    const llama = { loadModel: async (model: object) => void seen.push(model) };
    const open = async (options: object) => {
      seen.push(options);
      return llama as unknown as Llama;
    };
    const opened = await openOnGpu(open, { kind, contextTokens }, { gpu: false, build: "never" });
    await opened.loadModel({ modelPath: "/m.gguf", gpuLayers: 0 });
    expect(seen).toEqual([
      { gpu: kind, build: "never" },
      { modelPath: "/m.gguf", gpuLayers },
    ]);
  },
);
