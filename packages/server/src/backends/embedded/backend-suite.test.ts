import { testBackend } from "@plenum/core/testing";
import { describe, it } from "vitest";
import { createEmbeddedBackend } from "./index.ts";
import { chatModelFile, embeddingModelFile, missingModels } from "./testing/model-files.ts";

if (missingModels === undefined) {
  testBackend({
    name: "embedded",
    chatModel: "smollm2:135m",
    embeddingModel: "all-minilm-l6-v2",
    // Its end tokens are barred.
    endless: { output: { format: { type: "text" } }, sampling: { logitBias: { 0: -100, 2: -100 } } },
    create: async () => createEmbeddedBackend({ paths: [chatModelFile(), embeddingModelFile()], contextTokens: 1_024 }),
  });
} else {
  // A file without a test counts as a failed one.
  describe.skip("backend embedded", () => {
    it("needs the models", () => {});
  });
}
