import { testBackend } from "@plenum/core/testing";
import { createOllamaBackend } from "./index.ts";
import { FakeOllama } from "./testing/fake-ollama.ts";

testBackend({
  name: "ollama",
  async create() {
    const server = await new FakeOllama().start();
    const backend = createOllamaBackend({ id: "ollama", baseUrl: server.url });
    const { close } = backend;
    backend.close = async () => {
      await close.call(backend);
      await server.stop();
    };
    return backend;
  },
  chatModel: "smollm2:135m",
  embeddingModel: "all-minilm:l6",
  endless: { output: { format: { type: "text" } } },
});
