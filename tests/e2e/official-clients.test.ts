import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatModel, embeddingModel, type RunningService, skipReason, startService, waitFor } from "./service.ts";

const schema = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 1, maximum: 99 } },
  required: ["name", "age"],
  additionalProperties: false,
} as const;
const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 12 } },
  required: ["city"],
  additionalProperties: false,
} as const;

/** The official clients from npm, unmodified, against a real model. */
describe.skipIf(skipReason !== undefined)("official clients", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.stop());

  describe("openai", () => {
    const client = () => new OpenAI({ baseURL: `${service.url}/v1`, apiKey: "any", maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "Say hello." }];

    it("lists models and fetches one", async () => {
      const ids = (await client().models.list()).data.map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([chatModel, embeddingModel]));
      expect((await client().models.retrieve(chatModel)).id).toBe(chatModel);
    });

    it("chats, and the same streamed", async () => {
      const request = { model: "smollm2", messages, max_tokens: 16, temperature: 0 };
      const whole = await client().chat.completions.create(request);
      expect(whole.choices[0]?.message.content?.length).toBeGreaterThan(2);
      expect(whole.usage?.completion_tokens).toBeGreaterThan(0);
      let text = "";
      let usage = 0;
      const stream = await client().chat.completions.create({
        ...request,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        usage = chunk.usage?.completion_tokens ?? usage;
      }
      expect(text).toBe(whole.choices[0]?.message.content);
      expect(usage).toBe(whole.usage?.completion_tokens);
    });

    it("answers by a schema", async () => {
      const answer = await client().chat.completions.create({
        model: "smollm2",
        messages: [{ role: "user", content: "Give me a person as JSON." }],
        response_format: { type: "json_schema", json_schema: { name: "person", schema, strict: true } },
        temperature: 0,
      });
      expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toEqual({
        name: expect.any(String),
        age: expect.any(Number),
      });
    });

    it("calls a tool", async () => {
      const answer = await client().chat.completions.create({
        model: "smollm2",
        messages: [{ role: "user", content: "What is the weather in Paris?" }],
        tools: [{ type: "function", function: { name: "get_weather", description: "Weather of a city", parameters } }],
        tool_choice: "required",
        parallel_tool_calls: false,
        temperature: 0,
      });
      const [call] = answer.choices[0]?.message.tool_calls ?? [];
      expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
      expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
      expect(JSON.parse(call?.type === "function" ? call.function.arguments : "")).toEqual({
        city: expect.any(String),
      });
    });

    it("uses Responses, whole and streamed, with a schema and a tool", async () => {
      const request = { model: "smollm2", input: "Say hello.", max_output_tokens: 16, temperature: 0 };
      const whole = await client().responses.create(request);
      expect(whole.output_text.length).toBeGreaterThan(2);
      let text = "";
      for await (const event of await client().responses.create({ ...request, stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta;
      }
      expect(text).toBe(whole.output_text);
      const structured = await client().responses.create({
        model: "smollm2",
        input: "A person.",
        temperature: 0,
        text: { format: { type: "json_schema", name: "person", schema: { ...schema }, strict: true } },
      });
      expect(JSON.parse(structured.output_text)).toHaveProperty("age");
      const called = await client().responses.create({
        model: "smollm2",
        input: "Weather in Rome?",
        temperature: 0,
        tools: [{ type: "function", name: "get_weather", parameters: { ...parameters }, strict: true }],
        tool_choice: "required",
        parallel_tool_calls: false,
      });
      expect(called.output.filter(({ type }) => type === "function_call")).toHaveLength(1);
    });

    it("embeds, floats and base64 alike", async () => {
      const bases = await client().embeddings.create({
        model: embeddingModel,
        input: ["a cat", "a kitten", "a railway"],
      });
      const floats = await client().embeddings.create({
        model: embeddingModel,
        input: "a cat",
        encoding_format: "float",
      });
      const [cat, kitten, railway] = bases.data.map(({ embedding }) => embedding);
      expect(cat).toHaveLength(384);
      expect(dot(cat, cat)).toBeCloseTo(1, 4);
      expect(dot(cat, kitten)).toBeGreaterThan(dot(cat, railway));
      expect(dot(cat, floats.data[0]?.embedding)).toBeCloseTo(1, 3);
    });

    it("aborts", async () => {
      const stream = await client().chat.completions.create({
        model: "smollm2",
        messages: [{ role: "user", content: "Write a very long story." }],
        stream: true,
        max_tokens: 4_000,
      });
      for await (const _chunk of stream) {
        stream.controller.abort();
        break;
      }
      await waitFor(async () => ((await service.metric("plenum_running")) === 0 ? true : undefined));
    });

    it("gets errors of its own classes", async () => {
      await expect(client().chat.completions.create({ model: "nope", messages })).rejects.toBeInstanceOf(
        OpenAI.NotFoundError,
      );
      await expect(
        client().chat.completions.create({ model: "smollm2", messages, temperature: 9 }),
      ).rejects.toMatchObject({ status: 400, param: "temperature" });
      const tooLong = [{ role: "user" as const, content: "word ".repeat(20_000) }];
      await expect(
        client().chat.completions.create({ model: "smollm2", messages: tooLong, stream: true }),
      ).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
      await expect(client().embeddings.create({ model: "smollm2", input: "x" })).rejects.toMatchObject({ status: 400 });
    });
  });

  describe("ollama", () => {
    const client = () => new Ollama({ host: service.url });
    const messages = [{ role: "user", content: "Say hello." }];

    it("lists and shows", async () => {
      const names = (await client().list()).models.map(({ name }) => name);
      expect(names.join()).toContain("smollm2:135m");
      expect((await client().show({ model: "smollm2:135m" })).capabilities).toContain("completion");
      expect((await client().ps()).models.length).toBeGreaterThan(0);
    });

    it("chats, and the same streamed", async () => {
      const options = { num_predict: 16, temperature: 0 };
      const whole = await client().chat({ model: "smollm2", messages, options });
      let text = "";
      for await (const part of await client().chat({ model: "smollm2", messages, options, stream: true })) {
        text += part.message.content;
      }
      expect(text.length).toBeGreaterThan(2);
      expect(text).toBe(whole.message.content);
      expect(whole.eval_count).toBeGreaterThan(0);
    });

    it("generates, answers by a schema, calls a tool", async () => {
      const generated = await client().generate({
        model: "smollm2",
        prompt: "Say hello.",
        options: { num_predict: 5 },
      });
      expect(generated.response?.length).toBeGreaterThan(0);
      const structured = await client().chat({
        model: "smollm2",
        messages,
        format: { ...schema },
        options: { temperature: 0 },
      });
      expect(JSON.parse(structured.message.content)).toHaveProperty("name");
      const forced = {
        model: "smollm2",
        messages,
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "Weather",
              parameters: { ...parameters, required: ["city"] },
            },
          },
        ],
        tool_choice: "required",
        options: { temperature: 0 },
      };
      const called = await client().chat(forced as unknown as Parameters<Ollama["chat"]>[0] & { stream?: false });
      expect(called.message.tool_calls?.[0]?.function).toMatchObject({
        name: "get_weather",
        arguments: { city: expect.any(String) },
      });
    });

    it("keeps a model loaded as long as it is asked to, and shows until when", async () => {
      const expiryAfter = async (keep_alive: string | number): Promise<number> => {
        await client().chat({ model: "smollm2", messages, options: { num_predict: 2 }, keep_alive });
        const shown = (await client().ps()).models.find(({ name }) => name === chatModel);
        return new Date(shown?.expires_at ?? 0).getTime() - Date.now();
      };
      expect((await expiryAfter("5m")) / 1_000).toBeCloseTo(300, -1);
      expect((await expiryAfter(600)) / 1_000).toBeCloseTo(600, -1);
      expect(await expiryAfter(-1)).toBeGreaterThan(365 * 86_400_000);
      await client().chat({ model: "smollm2", messages, options: { num_predict: 2 }, keep_alive: 0 });
      await waitFor(async () =>
        (await client().ps()).models.some(({ name }) => name === chatModel) ? undefined : true,
      );
      expect((await client().chat({ model: "smollm2", messages, options: { num_predict: 2 } })).done).toBe(true);
    });

    it("embeds", async () => {
      const { embeddings } = await client().embed({ model: embeddingModel, input: ["a cat", "a kitten"] });
      expect(embeddings.map((vector) => vector.length)).toEqual([384, 384]);
      expect(dot(embeddings[0], embeddings[0])).toBeCloseTo(1, 4);
    });

    it("aborts", async () => {
      const aborting = client();
      const stream = await aborting.chat({
        model: "smollm2",
        messages: [{ role: "user", content: "Write a very long story." }],
        stream: true,
        options: { num_predict: 4_000 },
      });
      await expect(
        (async () => {
          for await (const _part of stream) aborting.abort();
        })(),
      ).rejects.toMatchObject({ name: "AbortError" });
      await waitFor(async () => ((await service.metric("plenum_running")) === 0 ? true : undefined));
    });

    it("gets errors", async () => {
      await expect(client().chat({ model: "nope", messages })).rejects.toMatchObject({
        status_code: 404,
        error: "model 'nope' not found",
      });
      await expect(client().chat({ model: embeddingModel, messages })).rejects.toMatchObject({ status_code: 400 });
    });
  });
});

function dot(a: readonly number[] = [], b: readonly number[] = []): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}
