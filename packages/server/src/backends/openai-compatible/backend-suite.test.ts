import { testBackend } from "@plenum/core/testing";
import { afterAll } from "vitest";
import { isLoose, listOf } from "../shared/openai/loose.ts";
import { jsonAnswer, type ReplayAnswer, type ReplayRequest } from "../shared/testing/replay-upstream.ts";
import { chunk, recorded, routes, type Setup, setUp, sseAnswer } from "./testing/fixtures.ts";

let setup: Setup | undefined;
afterAll(() => setup?.upstream.close());

/** A request for more than a few tokens is answered without end. */
function chat({ body }: ReplayRequest): ReplayAnswer {
  const isEndless = isLoose(body) && !("max_tokens" in body);
  if (isEndless) return { writes: endless(), end: "open" };
  return recorded("llama-server-0.6.0/chat-stream-usage");
}

function* endless() {
  const [write] = sseAnswer([chunk({ content: "a" })]).writes;
  if (write !== undefined) for (;;) yield write;
}

function embeddings({ body }: ReplayRequest): ReplayAnswer {
  const inputs = isLoose(body) ? listOf(body["input"]) : [];
  const data = inputs.map((input, index) => ({ index, embedding: [String(input).length, 1, -2] })).reverse();
  return jsonAnswer({ data, usage: { prompt_tokens: inputs.length } });
}

testBackend({
  name: "openai-compatible",
  chatModel: "m-tiny",
  embeddingModel: "all-minilm",
  endless: { output: { format: { type: "text" } } },
  create: async () => {
    setup = await setUp(
      routes({
        "/v1/models": () => jsonAnswer({ data: [{ id: "m-tiny" }, { id: "all-minilm" }] }),
        "/v1/chat/completions": chat,
        "/v1/embeddings": embeddings,
      }),
    );
    return setup.backend;
  },
});
