import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findLocalRuntimes } from "../../packages/server/src/index.ts";
import { type Json, measured, post, waitFor } from "../e2e/service.ts";
import { ask } from "./ask.ts";
import { type BeforeVllm, noVllm, startBeforeVllm } from "./vllm.ts";

/** The runtime's own answers, and the same through the service. */
describe.skipIf(noVllm !== undefined)(`a service before vLLM${noVllm ? `, skipped: ${noVllm}` : ""}`, () => {
  let vllm: BeforeVllm;
  let ours: string;
  let model: string;
  beforeAll(async () => {
    vllm = await startBeforeVllm();
    ours = vllm.service.url;
    ({ model } = vllm);
    measured("vLLM", vllm.version);
  });
  afterAll(() => vllm?.stop());

  const messages = [{ role: "user", content: "Name three colours." }];
  const brief = { messages, max_tokens: 16, temperature: 0 };
  const tools = [
    {
      type: "function",
      function: {
        name: "get_weather",
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
          additionalProperties: false,
        },
      },
    },
  ];
  const chatAt = (url: string, more: Json = {}): Promise<Json> =>
    ask(url, "/v1/chat/completions", { model, ...brief, ...more });

  async function streamed(url: string, more: Json = {}): Promise<readonly Json[]> {
    const body = { model, ...brief, ...more, stream: true };
    const text = await (await fetch(`${url}/v1/chat/completions`, post(body))).text();
    const events = text.split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [event.slice(6)] : []));
    expect(events.at(-1)).toBe("[DONE]");
    return events.slice(0, -1).map((event) => JSON.parse(event));
  }
  const contentOf = (chunks: readonly Json[]): string =>
    chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("");

  it("is found where it runs, and told from other servers", async () => {
    const { port } = new URL(vllm.url);
    const found = await findLocalRuntimes({ own: [], ports: [Number(port)], timeoutMs: 3_000 });
    expect(found).toMatchObject([{ kind: "vllm" }]);
  });

  it("has its model and context in the catalog", async () => {
    const { data } = await ask(ours, "/lmsp/v1/models");
    expect(data).toHaveLength(1);
    expect(data[0]).toMatchObject({
      id: model,
      state: "loaded",
      capabilities: { chat: true, embeddings: false },
      limits: { context_tokens: vllm.contextTokens },
    });
  });

  it("gives its whole answer: text, end, usage", async () => {
    const [here, there] = [await chatAt(ours), await chatAt(vllm.url)];
    expect(here.choices[0].message.content).toBe(there.choices[0].message.content);
    expect(here.choices[0].finish_reason).toBe(there.choices[0].finish_reason);
    const { prompt_tokens, completion_tokens } = there.usage;
    expect(here.usage).toMatchObject({ prompt_tokens, completion_tokens });
  });

  it("gives its stream: text, end, usage when asked", async () => {
    const asked = { stream_options: { include_usage: true } };
    const [here, there] = [await streamed(ours, asked), await streamed(vllm.url, asked)];
    expect(contentOf(here)).toBe(contentOf(there));
    expect(contentOf(here)).not.toBe("");
    expect(here.at(-1).usage.completion_tokens).toBe(there.at(-1).usage.completion_tokens);
  });

  it("answers the same through every door", async () => {
    const text = (await chatAt(vllm.url)).choices[0].message.content;
    const ollama = await ask(ours, "/api/chat", {
      model,
      messages,
      stream: false,
      options: { num_predict: 16, temperature: 0 },
    });
    const responses = await ask(ours, "/v1/responses", {
      model,
      input: messages,
      max_output_tokens: 16,
      temperature: 0,
    });
    const native = await ask(ours, "/lmsp/v1/responses", {
      model,
      input: messages[0]?.content,
      output: { max_tokens: 16 },
      sampling: { temperature: 0 },
    });
    expect(ollama.message.content).toBe(text);
    expect(responses.output[0].content[0].text).toBe(text);
    expect(native.output[0].content[0].text).toBe(text);
  });

  it("tells log probabilities", async () => {
    const asked = { logprobs: true, top_logprobs: 2 };
    const [here, there] = [await chatAt(ours, asked), await chatAt(vllm.url, asked)];
    const [first, theirs] = [here.choices[0].logprobs.content[0], there.choices[0].logprobs.content[0]];
    expect(first).toMatchObject({ token: theirs.token, bytes: theirs.bytes });
    expect(first.logprob).toBeCloseTo(theirs.logprob, 3);
    expect(first.top_logprobs).toHaveLength(2);
  });

  it.each([
    ["any", "required"],
    ["a named one", { type: "function", function: { name: "get_weather" } }],
  ])("makes a call that must be made: %s", async (_name, tool_choice) => {
    const asked = { messages: [{ role: "user", content: "Weather in Paris?" }], tools, tool_choice, max_tokens: 100 };
    const { message, finish_reason } = (await chatAt(ours, asked)).choices[0];
    expect(finish_reason).toBe("tool_calls");
    expect(message.tool_calls[0].function.name).toBe("get_weather");
    expect(JSON.parse(message.tool_calls[0].function.arguments)).toEqual({ city: expect.any(String) });
  });

  // It lets blanks stand anywhere, and a small model writes nothing else in time: the beginning has to do.
  it("holds an answer to a schema", async () => {
    const schema = { type: "object", properties: { age: { enum: [7, 8, 9] } }, required: ["age"] };
    const response_format = { type: "json_schema", json_schema: { name: "person", schema, strict: true } };
    const [here, there] = [await chatAt(ours, { response_format }), await chatAt(vllm.url, { response_format })];
    expect(here.choices[0].message.content).toMatch(/^\{\s*"age"\s*:/);
    expect(here.choices[0].message.content).toBe(there.choices[0].message.content);
  });

  it.each([
    [
      "a prompt beyond the context",
      { messages: [{ role: "user", content: "x ".repeat(20_000) }] },
      400,
      "context_length_exceeded",
    ],
    ["an unknown model", { model: "nope", messages }, 404, "model_not_found"],
  ])("refuses %s", async (_name, body, status, code) => {
    const answer = await vllm.service.json("/v1/chat/completions", post({ model, ...body }));
    expect(answer).toMatchObject({ status, body: { error: { type: expect.any(String), code } } });
  });

  it("refuses embeddings of a model that has none", async () => {
    const answer = await vllm.service.json("/v1/embeddings", post({ model, input: "x" }));
    expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining(model) } } });
  });

  it.each([true, false])("stops it when the client goes away, streaming: %s", async (stream) => {
    const abort = new AbortController();
    // Without its end tokens it goes on to its bound, which takes far longer than the test may.
    const endless = { max_tokens: vllm.contextTokens - 200, logit_bias: { 0: -100, 2: -100 } };
    const body = { model, messages, stream, ...endless };
    const answer = fetch(`${ours}/v1/chat/completions`, post(body, abort.signal))
      .then((found) => found.text())
      .catch((error: Error) => error.name);
    await waitFor(async () => (await vllm.running()) === 1, 60_000);
    const leftAt = performance.now();
    abort.abort();
    expect(await answer).toBe("AbortError");
    await waitFor(async () => (await vllm.running()) === 0, 30_000);
    measured(`vLLM free after the client left, streaming: ${stream}`, `${(performance.now() - leftAt).toFixed(0)} ms`);
    const { data } = await ask(ours, "/lmsp/v1/responses?limit=1");
    expect(data[0]).toMatchObject({ status: "cancelled" });
  });
});
