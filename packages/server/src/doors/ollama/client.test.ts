import { CoreError } from "@plenum/core";
import { textAnswer } from "@plenum/core/testing";
import { Ollama } from "ollama";
import { expect, test } from "vitest";
import { createOllamaDoor } from "./index.ts";
import { doorFetch } from "./testing/fetch.ts";
import { setUpRecordedModels } from "./testing/models.ts";

/** The official client, unmodified, with a `fetch` that needs no port. */
function setUp() {
  const made = setUpRecordedModels();
  const client = new Ollama({
    host: "http://127.0.0.1:7411",
    fetch: doorFetch(createOllamaDoor({ version: "1.2.3" }), made.core),
  });
  return { ...made, client };
}

const model = "smollm2:135m";
const messages = [{ role: "user", content: "Hi" }];
const weather = { type: "function", function: { name: "get_weather", parameters: { type: "object" } } };

test("list, ps, show, version", async () => {
  const { client } = setUp();
  const { models } = await client.list();
  expect(models.map(({ name }) => name)).toContain(model);
  expect(models[0]?.details.parameter_size).toBe("134.52M");
  const loaded = await client.ps();
  expect(Number.isNaN(new Date(loaded.models[0]?.expires_at ?? "").getTime())).toBe(false);
  expect((await client.show({ model })).capabilities).toContain("completion");
  expect(await client.version()).toEqual({ version: "0.17.4" });
});

test("chat and stream", async () => {
  const { client, backend } = setUp();
  backend.answer = textAnswer(["Hé", "llo", " 🦀"]);
  const answer = await client.chat({ model, messages });
  expect([answer.message, answer.done_reason]).toEqual([{ role: "assistant", content: "Héllo 🦀" }, "stop"]);
  let text = "";
  let last: unknown;
  for await (const part of await client.chat({ model, messages, stream: true })) {
    text += part.message.content;
    last = part;
  }
  expect(text).toBe("Héllo 🦀");
  expect(last).toMatchObject({ done: true, prompt_eval_count: 3, eval_count: 3 });
});

test("a tool call and its answer", async () => {
  const { client, backend } = setUp();
  const asked = { model: "tools-model", tools: [weather], messages };
  const { message } = await client.chat({ ...asked, format: { type: "object" } });
  expect(message.tool_calls?.[0]?.function).toMatchObject({ name: "get_weather", arguments: { city: "Paris" } });
  const result = { role: "tool", tool_name: "get_weather", content: "22 degrees" };
  const answer = await client.chat({ ...asked, messages: [...messages, message, result] });
  expect(answer.message.content).toBe("Hi");
  const items = backend.requests[1]?.input.kind === "items" ? backend.requests[1].input.items : [];
  const [call, output] = items.slice(-2);
  expect(call).toMatchObject({ type: "function_call", arguments: '{"city":"Paris"}' });
  expect(output).toMatchObject({ type: "function_call_output", callId: call?.type === "function_call" && call.callId });
});

test("generate, thinking, embeddings", async () => {
  const { client } = setUp();
  expect((await client.generate({ model, prompt: "Hi" })).response).toBe("Hi");
  const thought = await client.chat({ model: "think-model", messages, think: true });
  expect(thought.message).toMatchObject({ content: "", thinking: "Hm" });
  const embedded = await client.embed({ model: "all-minilm:l6", input: ["a", "b"] });
  expect(embedded.embeddings).toHaveLength(2);
  expect((await client.embeddings({ model: "all-minilm:l6", prompt: "a" })).embedding).toHaveLength(3);
});

test("abort ends the work", async () => {
  const { client, backend } = setUp();
  backend.answer = async function* (_request, signal) {
    yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
    await new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  const stream = await client.chat({ model, messages, stream: true });
  const reading = (async () => {
    for await (const _part of stream) stream.abort();
  })();
  await expect(reading).rejects.toThrow("aborted");
  await expect.poll(() => [backend.running, backend.aborted]).toEqual([0, 1]);
});

test("errors before and in a stream", async () => {
  const { client, backend } = setUp();
  const unknown = client.chat({ model: "x", messages });
  await expect(unknown).rejects.toMatchObject({ status_code: 404, error: "model 'x' not found" });
  const pulled = client.pull({ model: "x" });
  await expect(pulled).rejects.toMatchObject({ status_code: 500, error: expect.stringContaining("no such host") });
  backend.answer = async function* () {
    yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
    await new Promise((resolve) => setTimeout(resolve, 10));
    throw new CoreError("backend-error", "The engine broke.");
  };
  const reading = (async () => {
    for await (const _part of await client.chat({ model, messages, stream: true }));
  })();
  await expect(reading).rejects.toThrow("The engine broke.");
});

test("pull with its progress, copy and delete", async () => {
  const { client } = setUp();
  expect(await client.pull({ model: "known" })).toEqual({ status: "success" });
  const parts: unknown[] = [];
  for await (const part of await client.pull({ model: "known", stream: true })) parts.push(part);
  expect(parts[0]).toEqual({ status: "pulling manifest" });
  expect(parts.at(-1)).toEqual({ status: "success" });
  await client.copy({ source: model, destination: "copied" });
  expect((await client.show({ model: "copied" })).details.family).toBe("llama");
  await client.delete({ model: "copied" });
  await expect(client.show({ model: "copied" })).rejects.toMatchObject({ status_code: 404 });
});
