import { testBackend } from "@plenum/core/testing";
import { afterAll } from "vitest";
import { isLoose, listOf } from "../shared/openai/loose.ts";
import { type Answer, models, type Setup, scripts, setUp } from "./testing/fixtures.ts";

let setup: Setup | undefined;
afterAll(() => setup?.close());

/** A request without a bound is answered until it is stopped. */
async function chat({ envelope: { body }, writer, partial, end, stopped, operation }: Answer): Promise<void> {
  if (body["max_tokens"] === undefined) {
    void stopped.then(() => operation.drop(3));
    while (!operation.finished) {
      await partial(writer.textDelta(0, "a"));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return;
  }
  await partial(writer.textDelta(0, "Hel"));
  await partial(writer.textDelta(0, "lo"));
  const message = { role: "assistant", content: "Hello" };
  await partial(writer.usage({ inputTokens: 9, outputTokens: 2, totalTokens: 11 }));
  end(writer.completed({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
}

function embeddings({ envelope: { body }, writer, end }: Answer): void {
  const inputs = isLoose(body) ? listOf(body["input"]) : [];
  const data = inputs.map((input, index) => ({ index, embedding: [String(input).length, 1, -2] })).reverse();
  end(writer.completed({ data, usage: { prompt_tokens: inputs.length, total_tokens: inputs.length } }));
}

testBackend({
  name: "nnrp",
  chatModel: "m-tiny",
  embeddingModel: "all-minilm",
  endless: { output: { format: { type: "text" } } },
  create: async () => {
    const list = models({ id: "m-tiny" }, { id: "all-minilm", capabilities: { chat: false, embeddings: true } });
    setup = setUp(scripts({ "models.list": list, "chat.completions.create": chat, "embeddings.create": embeddings }));
    return setup.backend;
  },
});
