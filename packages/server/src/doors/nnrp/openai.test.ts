import { connectCarrier, createCarrierPair } from "@plenum/nnrp";
import { EventOrder, EventReader, nnrpFetch } from "@plenum/profile";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { callDoor } from "../shared/testing/call-door.ts";
import { type Bench, chat, envelope, lastResponse, messages, read, setUp } from "./testing/set-up.ts";

/** OpenAI's APIs over the door: what the profile makes of them, and the official SDK on top. */

/** Thinks, says something, calls two tools whose arguments interleave. */
function withTools(): Bench {
  const bench = setUp();
  bench.backend.answer = function* () {
    yield [
      { type: "accepted", inputTokens: 9 },
      { type: "reasoning", candidate: 0, delta: "Hm." },
    ];
    yield [{ type: "text", candidate: 0, delta: "Let me " }];
    yield [{ type: "text", candidate: 0, delta: "look." }];
    yield [{ type: "function_call", candidate: 0, call: 0, name: "get_weather", callId: "call_a" }];
    yield [{ type: "function_call", candidate: 0, call: 1, name: "get_time", callId: "call_b" }];
    yield [{ type: "function_call_arguments", candidate: 0, call: 0, delta: '{"city":' }];
    yield [{ type: "function_call_arguments", candidate: 0, call: 1, delta: "{}" }];
    yield [{ type: "function_call_arguments", candidate: 0, call: 0, delta: '"Paris"}' }];
    yield [
      { type: "finish", candidate: 0, finishReason: "tool_calls" },
      { type: "usage", usage: { inputTokens: 9, outputTokens: 20, cachedInputTokens: 4, reasoningTokens: 1 } },
    ];
  };
  return bench;
}

const tools = [
  { type: "function", function: { name: "get_weather" } },
  { type: "function", function: { name: "get_time" } },
];
const flatTools = [
  { type: "function", name: "get_weather" },
  { type: "function", name: "get_time" },
];

/** Fails on an order that the profile does not allow. */
function checkOrder(events: readonly object[], terminal: object | undefined): void {
  const order = new EventOrder({ isStrict: true });
  const reader = new EventReader();
  for (const [value, delivery] of [
    ...events.map((event) => [event, "partial"] as const),
    [terminal, "terminal"] as const,
  ]) {
    const result = reader.read(JSON.stringify(value));
    if (result.kind !== "event") throw new Error(`${result.kind}: ${JSON.stringify(value)}`);
    expect(order.take(result.event, delivery)).toBeUndefined();
  }
}

describe.each([false, true])("tool calls of a chat, with chunks: %s", (openai_chunk) => {
  it("come as the profile says", async () => {
    const session = await withTools().session();
    const { partials, terminal } = await read(
      session.submit({ body: chat({ tools, stream_options: { include_usage: true } }, { openai_chunk }) }),
    );
    checkOrder(partials, terminal);
    const events = partials.filter(({ type }) => type !== "response.openai_chunk");
    expect(events.map(({ openai_chunk: _, tool_call: __, ...event }) => event)).toEqual([
      { type: "response.output_text.delta", index: 0, delta: "Let me " },
      { type: "response.output_text.delta", index: 0, delta: "look." },
      {
        type: "response.tool_call.started",
        index: 0,
        item_id: "tool-call-0-0",
        call_id: "call_a",
        name: "get_weather",
      },
      { type: "response.tool_call.started", index: 1, item_id: "tool-call-0-1", call_id: "call_b", name: "get_time" },
      {
        type: "response.tool_call.delta",
        index: 0,
        item_id: "tool-call-0-0",
        call_id: "call_a",
        arguments_delta: '{"city":',
      },
      {
        type: "response.tool_call.delta",
        index: 1,
        item_id: "tool-call-0-1",
        call_id: "call_b",
        arguments_delta: "{}",
      },
      {
        type: "response.tool_call.delta",
        index: 0,
        item_id: "tool-call-0-0",
        call_id: "call_a",
        arguments_delta: '"Paris"}',
      },
      {
        type: "response.tool_call.completed",
        index: 0,
        item_id: "tool-call-0-0",
        call_id: "call_a",
        name: "get_weather",
        arguments: '{"city":"Paris"}',
      },
      {
        type: "response.tool_call.completed",
        index: 1,
        item_id: "tool-call-0-1",
        call_id: "call_b",
        name: "get_time",
        arguments: "{}",
      },
      {
        type: "response.usage",
        usage: expect.objectContaining({ input_tokens: 9, completion_tokens: 20, total_tokens: 29 }),
      },
    ]);
    expect(terminal).toMatchObject({
      body: {
        choices: [
          {
            finish_reason: "tool_calls",
            message: { reasoning_content: "Hm.", tool_calls: [{ id: "call_a" }, { id: "call_b" }] },
          },
        ],
      },
    });
    expect(partials.some((event) => event["openai_chunk"] !== undefined)).toBe(openai_chunk);
  });
});

describe.each([false, true])("a response, with chunks: %s", (openai_chunk) => {
  it("comes as the same events, its places those of the output", async () => {
    const session = await withTools().session();
    const body = { model: "m-tiny", input: "Hi", tools: flatTools, stream: true };
    const { partials, terminal } = await read(
      session.submit({ body: { event: envelope("responses.create", body, { nnrp: { openai_chunk } }) } }),
    );
    checkOrder(partials, terminal);
    const started = partials.filter(({ type }) => type === "response.tool_call.started");
    expect(started).toMatchObject([
      { index: 2, item_id: expect.stringMatching(/^fc_/), call_id: "call_a" },
      { index: 3, item_id: expect.stringMatching(/^fc_/), call_id: "call_b" },
    ]);
    expect(terminal).toMatchObject({
      body: { object: "response", status: "completed", output: [{ type: "reasoning" }, {}, {}, {}] },
    });
  });
});

it("a call that was cut off ends in an error of its own, and its name of an earlier one is not reused", async () => {
  const bench = setUp();
  bench.backend.answer = function* () {
    yield [
      { type: "accepted", inputTokens: 9 },
      { type: "function_call", candidate: 0, call: 0, name: "a", callId: "same" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: "{}" },
      { type: "function_call", candidate: 0, call: 1, name: "b", callId: "same" },
      { type: "function_call_arguments", candidate: 0, call: 1, delta: '{"cit' },
      { type: "finish", candidate: 0, finishReason: "length" },
      { type: "usage", usage: { inputTokens: 9, outputTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 } },
    ];
  };
  const session = await bench.session();
  const { partials, terminal } = await read(
    session.submit({
      body: chat({
        tools: [
          { type: "function", function: { name: "a" } },
          { type: "function", function: { name: "b" } },
        ],
      }),
    }),
  );
  checkOrder(partials, terminal);
  expect(partials).toContainEqual(expect.objectContaining({ type: "response.tool_call.completed", call_id: "same" }));
  expect(partials).toContainEqual(
    expect.objectContaining({
      type: "response.tool_call.error",
      error: expect.objectContaining({ code: "tool_call_stream_interrupted" }),
    }),
  );
  expect(bench.faults).toEqual([]);
});

it("diagnostics come first with the id, and at the end with what was measured", async () => {
  const bench = withTools();
  const session = await bench.session();
  for (const stream of [true, false]) {
    const { partials } = await read(session.submit({ body: chat({ stream }, { diagnostics: true }) }));
    const { id } = await lastResponse(bench.core);
    const told = partials.flatMap((event) => (event.type === "response.diagnostics" ? [event["diagnostics"]] : []));
    expect(told).toMatchObject([
      { response_id: id, transport: "memory" },
      {
        response_id: id,
        runtime: "scripted",
        queue_delay_ms: expect.any(Number),
        cached_input_tokens: 4,
        flow_pressure: "none",
      },
    ]);
  }
});

it("names the client's request, or one made of the frame", async () => {
  const session = await setUp().session();
  const submit = (further: object) => read(session.submit({ body: { event: envelope("models.list", {}, further) } }));
  expect((await submit({ request_id: "mine" })).terminal).toMatchObject({ request_id: "mine" });
  expect((await submit({})).terminal).toMatchObject({ request_id: expect.stringMatching(/^nnrp-\d+-\d+$/) });
});

it("models.list names this service and those behind it, so that no loop is made; the page over HTTP does not", async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `s${index}`);
  const { client, core, door } = setUp({ door: { services: () => ids } });
  expect((await (await client()).loadCapabilities())?.services).toEqual(ids.slice(0, 32));
  const page = await callDoor(door.pages, core, { method: "GET", path: "/.well-known/nnrp-openai-compatible" });
  expect(JSON.parse(page.text)).not.toHaveProperty("services");
});

it("models.list brings the capability document along", async () => {
  const client = await setUp().client();
  expect(await client.loadCapabilities()).toMatchObject({
    compatibility_levels: [1, 2, 3],
    models: [{ id: "m-tiny" }, { id: "e-tiny" }],
  });
});

it("nothing of nnrp reaches a backend", async () => {
  const bench = setUp();
  const session = await bench.session();
  await read(
    session.submit({
      body: chat({}, { authorization: "Bearer x", timeout_ms: 9999, diagnostics: true, future: "thing" }),
    }),
  );
  expect(JSON.stringify(bench.backend.requests)).not.toMatch(/Bearer|nnrp|future|diagnostics/);
});

describe("OpenAI's own SDK", () => {
  const over = (bench: Bench) => {
    const connect = () => {
      const [near, far] = createCarrierPair();
      bench.door.server.accept(far);
      return connectCarrier(near);
    };
    return new OpenAI({ baseURL: "http://nnrp/v1", apiKey: "x", maxRetries: 0, fetch: nnrpFetch(connect) });
  };

  it("streams a chat with tools", async () => {
    const stream = over(withTools()).chat.completions.stream({
      model: "m-tiny",
      messages: [...messages],
      tools: tools as never,
    });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: "call_a", function: { arguments: '{"city":"Paris"}' } },
      { id: "call_b" },
    ]);
  });

  it("streams a response, and makes vectors", async () => {
    const openai = over(withTools());
    const final = await openai.responses.stream({ model: "m-tiny", input: "Hi" }).finalResponse();
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    const { data } = await openai.embeddings.create({ model: "e-tiny", input: ["a", "b"] });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([3, 3]);
  });

  it("is told of errors with their status", async () => {
    const openai = over(setUp());
    await expect(openai.chat.completions.create({ model: "nope", messages: [...messages] })).rejects.toMatchObject({
      status: 404,
      code: "unsupported_model",
    });
    await expect(
      openai.chat.completions.create({ model: "m-tiny", messages: [...messages], temperature: 9 }),
    ).rejects.toMatchObject({ status: 400, param: "temperature" });
  });
});
