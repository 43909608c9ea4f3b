import type { Core } from "@plenum/core";
import { type ScriptedAnswer, type ScriptedBackend, textAnswer } from "@plenum/core/testing";
import OpenAI, { APIError, BadRequestError, NotFoundError } from "openai";
import { beforeEach, describe, expect, it } from "vitest";
import { doorFetch } from "./testing/door-fetch.ts";
import { door, setUp } from "./testing/set-up.ts";

/** The official client, unmodified, against the door. */

let core: Core;
let backend: ScriptedBackend;
let client: OpenAI;

beforeEach(() => {
  ({ core, backend } = setUp());
  client = new OpenAI({
    apiKey: "any",
    baseURL: "http://127.0.0.1:7411/v1",
    fetch: doorFetch(door, core),
    maxRetries: 0,
  });
});

const messages = [{ role: "user" as const, content: "Hi" }];
const model = "m-tiny";

const callWeather: ScriptedAnswer = function* () {
  yield [
    { type: "accepted", inputTokens: 5 },
    { type: "function_call", candidate: 0, call: 0, name: "get_weather", callId: "call_a" },
    { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"city":' },
    { type: "function_call_arguments", candidate: 0, call: 0, delta: '"Paris"}' },
    { type: "finish", candidate: 0, finishReason: "tool_calls" },
    { type: "usage", usage: { inputTokens: 5, outputTokens: 7, cachedInputTokens: 0, reasoningTokens: 0 } },
  ];
};

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

const endless: ScriptedAnswer = async function* (_request, signal) {
  yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
  await new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
};

describe("models", () => {
  it("lists every model and fetches each back", async () => {
    const ids: string[] = [];
    for await (const entry of client.models.list()) ids.push(entry.id);
    expect(ids).toContain("acme/tiny:q4");
    for (const id of ids) expect((await client.models.retrieve(id)).id).toBe(id);
  });

  it("tells an unknown one", async () => {
    await expect(client.models.retrieve("nope")).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  });
});

describe("chat", () => {
  it("answers", async () => {
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer.id).toMatch(/^chatcmpl-/);
    expect(answer.choices).toMatchObject([{ index: 0, finish_reason: "stop", message: { content: "Hello" } }]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
  });

  it("streams, and the SDK's own accumulator agrees", async () => {
    const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    let text = "";
    stream.on("content", (delta) => {
      text += delta;
    });
    const final = await stream.finalChatCompletion();
    expect(text).toBe("Hello");
    expect(final.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: "Hello" } });
    expect(final.usage?.total_tokens).toBe(5);
  });

  it.each([false, true])("calls a tool and takes its answer (streamed: %s)", async (isStream) => {
    backend.answer = callWeather;
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters } }];
    const params = { model, messages, tools, tool_choice: "required" as const };
    const answer = isStream
      ? await client.chat.completions.stream(params).finalChatCompletion()
      : await client.chat.completions.create(params);
    const message = answer.choices[0]?.message;
    expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
    expect(message?.tool_calls).toMatchObject([
      { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
    ]);
    backend.answer = textAnswer(["18 C"]);
    const turn = [...messages, ...(message ? [message] : [])];
    const next = await client.chat.completions.create({
      model,
      messages: [...turn, { role: "tool", tool_call_id: "call_a", content: "18" }],
      tools,
    });
    expect(next.choices[0]?.message.content).toBe("18 C");
    expect(backend.requests.at(-1)?.input).toMatchObject({
      items: [
        { type: "message" },
        { type: "function_call", callId: "call_a", arguments: '{"city":"Paris"}' },
        { type: "function_call_output", callId: "call_a", output: "18" },
      ],
    });
  });

  it("parses an answer by schema", async () => {
    backend.answer = textAnswer(['{"n":', "3}"]);
    const answer = await client.chat.completions.parse({
      model,
      messages,
      response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema: { type: "object" } } },
    });
    expect(answer.choices[0]?.message.parsed).toEqual({ n: 3 });
  });

  it("aborts the work when the stream is left", async () => {
    backend.answer = endless;
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    for await (const _chunk of stream) break;
    await expect.poll(() => backend.running).toBe(0);
    expect(backend.aborted).toBe(1);
  });

  it("throws when the stream breaks", async () => {
    backend.answer = async function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
      await new Promise((resolve) => setTimeout(resolve, 10));
      throw new Error("boom");
    };
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const read = async (): Promise<void> => {
      for await (const _chunk of stream);
    };
    await expect(read()).rejects.toThrow(APIError);
  });
});

describe("responses", () => {
  it("answers", async () => {
    const response = await client.responses.create({ model, input: "Hi" });
    expect(response).toMatchObject({ status: "completed", output_text: "Hello", error: null });
    expect(response.usage).toMatchObject({ input_tokens: 3, output_tokens: 2, total_tokens: 5 });
  });

  it("streams, and the SDK's own accumulator agrees", async () => {
    const stream = client.responses.stream({ model, input: "Hi" });
    const types: string[] = [];
    stream.on("event", (event) => types.push(event.type));
    const final = await stream.finalResponse();
    expect(final.output_text).toBe("Hello");
    expect(types.at(0)).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
  });

  it("calls a tool", async () => {
    backend.answer = callWeather;
    const tools = [{ type: "function" as const, name: "get_weather", parameters, strict: true }];
    const stream = client.responses.stream({ model, input: "Hi", tools, tool_choice: "required" });
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: "function_call", call_id: "call_a", arguments: '{"city":"Paris"}' }]);
  });

  it("chains, reads back, lists its input, cancels and deletes", async () => {
    const first = await client.responses.create({ model, input: "Hi", instructions: "Be brief." });
    const second = await client.responses.create({ model, input: "More", previous_response_id: first.id });
    expect(await client.responses.retrieve(second.id)).toMatchObject({
      id: second.id,
      output_text: "Hello",
      previous_response_id: first.id,
    });
    const roles: unknown[] = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: "asc", limit: 2 })) {
      roles.push("role" in item ? item.role : item.type);
    }
    expect(roles).toEqual(["user", "assistant", "user"]);
    expect((await client.responses.cancel(second.id)).status).toBe("completed");
    await client.responses.delete(second.id);
    await expect(client.responses.retrieve(second.id)).rejects.toThrow(NotFoundError);
  });

  it("throws when it is cancelled while it streams", async () => {
    backend.answer = endless;
    const stream = await client.responses.create({ model, input: "Hi", stream: true });
    const read = async (): Promise<void> => {
      for await (const event of stream) {
        if (event.type === "response.output_text.delta") {
          const [run] = (await core.responses.list({ limit: 1 }, { id: "local", scopes: new Set() })).data;
          if (run) await client.responses.cancel(run.response.id);
        }
      }
    };
    await expect(read()).rejects.toThrow("cancelled");
  });
});

describe("embeddings", () => {
  it("asks for base64 by itself and gets floats", async () => {
    const { data, usage } = await client.embeddings.create({ model: "e-tiny", input: ["a", "b"] });
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
    expect(data[1]?.embedding.map((value) => value.toFixed(2))).toEqual(["0.60", "-0.80", "0.00"]);
    expect(usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
  });

  it("gets floats where it asks for them", async () => {
    const { data } = await client.embeddings.create({ model: "e-tiny", input: "a", encoding_format: "float" });
    expect(data[0]?.embedding).toHaveLength(3);
  });
});

describe("completions", () => {
  it("answers and streams", async () => {
    const answer = await client.completions.create({ model, prompt: "Hel" });
    expect(answer.choices[0]).toMatchObject({ text: "Hello", finish_reason: "stop", index: 0 });
    let text = "";
    for await (const chunk of await client.completions.create({ model, prompt: "Hel", stream: true })) {
      text += chunk.choices[0]?.text ?? "";
    }
    expect(text).toBe("Hello");
  });
});

it("tells a wrong request by its field, and is not retried", async () => {
  await expect(client.chat.completions.create({ model, messages, temperature: 9 })).rejects.toThrow(BadRequestError);
  await expect(client.chat.completions.create({ model, messages, temperature: 9 })).rejects.toMatchObject({
    param: "temperature",
    type: "invalid_request_error",
  });
});
