import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { connect } from "@plenum/nnrp/node";
import { type NnrpFetch, nnrpFetch } from "@plenum/profile";
import { embed, generateText, jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  chatModel,
  embeddingModel,
  endless,
  type Json,
  measured,
  type RunningService,
  skipReason,
  startService,
  waitFor,
} from "../e2e/service.ts";

const carriers = ["tcp", "websocket", "ipc"] as const;
const title = `SDKs over NNRP, unmodified${skipReason === undefined ? "" : `, skipped: ${skipReason}`}`;
const messages = [{ role: "user" as const, content: "Say hello." }];
const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 12 } },
  required: ["city"],
  additionalProperties: false,
} as const;

/** `plenum serve` with real models; what is in between is `nnrpFetch`, and HTTP plays no part. */
describe.skipIf(skipReason !== undefined)(title, () => {
  const folder = mkdtempSync(join(tmpdir(), "plenum-nnrp-sdk-"));
  let service: RunningService;
  /** What the service says of itself: an address for each carrier. */
  let endpoints: ReadonlyMap<string, string>;
  const opened: NnrpFetch[] = [];

  beforeAll(async () => {
    service = await startService({ args: ["--nnrp", "tcp://127.0.0.1:0", "--nnrp", `unix://${folder}/nnrp.sock`] });
    const { interfaces } = (await service.json("/.well-known/lmsp")).body;
    const own = interfaces.filter(({ kind }: Json) => kind === "nnrp");
    endpoints = new Map(own.map(({ transport, url }: Json) => [transport, url]));
  });
  afterAll(async () => {
    await Promise.all(opened.map((overNnrp) => overNnrp.close()));
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function fetchOver(carrier: string): NnrpFetch {
    const overNnrp = nnrpFetch(() => connect(endpoints.get(carrier) ?? ""));
    opened.push(overNnrp);
    return overNnrp;
  }

  /** The responses of the door as LMSP lists them, the newest first. */
  async function listed(): Promise<readonly Json[]> {
    return (await service.json("/lmsp/v1/responses?door=nnrp&limit=10")).body.data;
  }

  /** Waits until the response that was under way is listed as cancelled, and nothing runs any more. */
  async function cancelled(id: string): Promise<void> {
    await waitFor(async () => (await listed()).some((each) => each.id === id && each.status === "cancelled"));
    await waitFor(async () => (await service.metric("plenum_running")) === 0);
  }

  async function runningId(): Promise<string> {
    return waitFor(async () => (await listed()).find(({ status }) => status === "in_progress")?.id);
  }

  describe.each(carriers)("openai over %s", (carrier) => {
    let client: OpenAI;
    beforeAll(() => {
      client = new OpenAI({ baseURL: "http://over-nnrp/v1", apiKey: "any", maxRetries: 0, fetch: fetchOver(carrier) });
    });
    beforeEach(() => expect(endpoints.get(carrier)).toBeDefined());

    it("lists models and fetches one", async () => {
      const ids = (await client.models.list()).data.map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([chatModel, embeddingModel]));
      expect((await client.models.retrieve(chatModel)).id).toBe(chatModel);
    });

    it("chats, and the same streamed", async () => {
      const request = { model: chatModel, messages, max_tokens: 16, temperature: 0 };
      const whole = await client.chat.completions.create(request);
      expect(whole.choices[0]?.message.content?.length).toBeGreaterThan(2);
      let text = "";
      let chunks = 0;
      let usage: number | undefined;
      const stream = await client.chat.completions.create({
        ...request,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const chunk of stream) {
        chunks += 1;
        text += chunk.choices[0]?.delta.content ?? "";
        usage = chunk.usage?.completion_tokens ?? usage;
      }
      expect(text).toBe(whole.choices[0]?.message.content);
      expect(chunks).toBeGreaterThan(3);
      expect(usage).toBe(whole.usage?.completion_tokens);
      expect((await listed())[0]).toMatchObject({ model: chatModel, usage: { output_tokens: usage } });
    });

    it.each([false, true])("calls a tool, streamed: %s", async (isStreamed) => {
      const request = {
        model: chatModel,
        messages: [{ role: "user" as const, content: "What is the weather in Paris?" }],
        tools: [
          {
            type: "function" as const,
            function: { name: "get_weather", description: "Weather of a city", parameters },
          },
        ],
        tool_choice: "required" as const,
        parallel_tool_calls: false,
        temperature: 0,
      };
      const answer = isStreamed
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      const [call] = answer.choices[0]?.message.tool_calls ?? [];
      expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
      expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
      expect(JSON.parse(call?.type === "function" ? call.function.arguments : "")).toEqual({
        city: expect.any(String),
      });
    });

    it("uses Responses, whole and streamed", async () => {
      const request = { model: chatModel, input: "Say hello.", max_output_tokens: 16, temperature: 0 };
      const whole = await client.responses.create(request);
      expect(whole.output_text.length).toBeGreaterThan(2);
      let text = "";
      let last = "";
      for await (const event of await client.responses.create({ ...request, stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta;
        last = event.type;
      }
      expect(text).toBe(whole.output_text);
      expect(["response.completed", "response.incomplete"]).toContain(last);
    });

    it("embeds, base64 and floats alike", async () => {
      const input = "a cat";
      const packed = await client.embeddings.create({ model: embeddingModel, input });
      const floats = await client.embeddings.create({ model: embeddingModel, input, encoding_format: "float" });
      expect(packed.data[0]?.embedding).toHaveLength(384);
      expect(packed.data[0]?.embedding[0]).toBeCloseTo(floats.data[0]?.embedding[0] ?? Number.NaN, 4);
    });

    it("aborts in the middle of a stream", async () => {
      const stream = await client.chat.completions.create({
        ...endless,
        model: chatModel,
        messages,
        stream: true,
        max_tokens: 4_000,
      });
      let id = "";
      let abortedAt = 0;
      for await (const _chunk of stream) {
        if (id !== "") continue;
        id = await runningId();
        abortedAt = performance.now();
        stream.controller.abort();
      }
      await cancelled(id);
      measured(
        `nnrp ${carrier}: abort of the SDK to the service's list`,
        `${(performance.now() - abortedAt).toFixed(1)} ms`,
      );
    });

    it("aborts what has not answered yet", async () => {
      const controller = new AbortController();
      const request = { ...endless, model: chatModel, messages, max_tokens: 4_000 };
      const answer = client.chat.completions.create(request, { signal: controller.signal });
      const id = await runningId();
      controller.abort();
      await expect(answer).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
      await cancelled(id);
    });

    it("gets errors of its own classes", async () => {
      const chat = client.chat.completions;
      await expect(chat.create({ model: "nope", messages })).rejects.toBeInstanceOf(OpenAI.NotFoundError);
      await expect(chat.create({ model: "nope", messages, stream: true })).rejects.toBeInstanceOf(OpenAI.NotFoundError);
      await expect(chat.create({ model: chatModel, messages, temperature: 9 })).rejects.toMatchObject({
        status: 400,
        param: "temperature",
      });
      const tooLong = [{ role: "user" as const, content: "word ".repeat(20_000) }];
      await expect(chat.create({ model: chatModel, messages: tooLong, stream: true })).rejects.toMatchObject({
        status: 400,
        code: "context_length_exceeded",
      });
      await expect(client.embeddings.create({ model: chatModel, input: "x" })).rejects.toMatchObject({ status: 400 });
      await expect(client.files.list()).rejects.toMatchObject({ status: 404 });
    });
  });

  describe("Vercel AI SDK", () => {
    let provider: ReturnType<typeof createOpenAI>;
    beforeAll(() => {
      provider = createOpenAI({ baseURL: "http://over-nnrp/v1", apiKey: "any", fetch: fetchOver("tcp") });
    });
    const settings = { prompt: "Say hello.", maxOutputTokens: 16, temperature: 0, maxRetries: 0 };

    it.each(["chat", "responses"] as const)("generates and streams text through %s", async (api) => {
      const model = provider[api](chatModel);
      const whole = await generateText({ ...settings, model });
      expect(whole.text.length).toBeGreaterThan(2);
      let text = "";
      for await (const delta of streamText({ ...settings, model }).textStream) text += delta;
      expect(text).toBe(whole.text);
    });

    it("calls a tool", async () => {
      const { toolCalls } = await generateText({
        model: provider.chat(chatModel),
        prompt: "What is the weather in Paris?",
        tools: {
          get_weather: tool({
            description: "Weather of a city",
            inputSchema: jsonSchema<{ city: string }>({ ...parameters, required: ["city"] }),
          }),
        },
        toolChoice: "required",
        temperature: 0,
        maxRetries: 0,
      });
      expect(toolCalls[0]).toMatchObject({ toolName: "get_weather", input: { city: expect.any(String) } });
    });

    it("embeds", async () => {
      const { embedding } = await embed({ model: provider.embedding(embeddingModel), value: "a cat", maxRetries: 0 });
      expect(embedding).toHaveLength(384);
    });

    it("aborts", async () => {
      const controller = new AbortController();
      const { textStream } = streamText({
        ...settings,
        model: provider.chat(chatModel),
        prompt: "Write a very long story.",
        maxOutputTokens: 1_000,
        abortSignal: controller.signal,
      });
      let id = "";
      for await (const _delta of textStream) {
        if (id !== "") continue;
        id = await runningId();
        controller.abort();
      }
      await cancelled(id);
    });

    it("gets an error with its status", async () => {
      const asked = generateText({ ...settings, model: provider.chat("nope") });
      await expect(asked).rejects.toMatchObject({ statusCode: 404 });
    });
  });
});
