import { SessionErrorCode } from "@plenum/nnrp";
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, type APIError, APIUserAbortError } from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { profileError } from "../errors.ts";
import { adaptChunks } from "../testing/adapt-chunks.ts";
import { adaptResponse } from "../testing/adapt-response.ts";
import { exchange, recordedResponse, recordedStream } from "../testing/fixtures.ts";
import { dataOf } from "../testing/render-sse.ts";
import { replay, ScriptedService } from "../testing/scripted-service.ts";
import { assembleChat, toSse } from "../testing/sdk.ts";
import { type NnrpFetch, type NnrpFetchOptions, nnrpFetch } from "./nnrp-fetch.ts";

/** The official client, unmodified, over NNRP. */

let service: ScriptedService;
let overNnrp: NnrpFetch;
let client: OpenAI;

function setUp(options: NnrpFetchOptions = {}): void {
  overNnrp = nnrpFetch(service.connect, options);
  client = new OpenAI({ apiKey: "key", baseURL: "http://anywhere/some/v1", fetch: overNnrp, maxRetries: 0 });
}

beforeEach(() => {
  service = new ScriptedService();
  setUp();
});

afterEach(async () => {
  await overNnrp.close();
  await service.close();
});

const model = "m";
const messages = [{ role: "user" as const, content: "Hi" }];
const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  model,
  created: 7,
  choices: [{ index: 0, message: { role: "assistant", content: '{"n":3}' }, finish_reason: "stop" }],
  usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 },
};

/** Starts an answer and waits to be stopped. */
function answerEndlessly(): void {
  service.script = async ({ writer, partial, stopped }) => {
    await partial(writer.textDelta(0, "x"));
    await stopped;
  };
}

describe("chat", () => {
  it("answers", async () => {
    service.script = ({ writer, end }) => end(writer.completed(completion));
    const { data, request_id: requestId } = await client.chat.completions.create({ model, messages }).withResponse();
    expect(data).toEqual(completion);
    expect(requestId).toBe(service.requests[0]?.requestId);
    expect(service.requests).toMatchObject([
      { operation: "chat.completions.create", body: { model, messages }, policy: { authorization: "Bearer key" } },
    ]);
    const parsed = await client.chat.completions.parse({ model, messages });
    expect(parsed.choices[0]?.message.content).toBe('{"n":3}');
  });

  it.each([
    ["chat-usage", true],
    ["chat-usage", false],
    ["chat-tools", true],
    ["chat-tools", false],
    ["chat-two-choices", true],
    ["chat-two-choices", false],
  ])("streams %s, with the service's chunks: %s", async (name, asksForChunks) => {
    setUp({ asksForChunks });
    const recorded = recordedStream(name);
    const body = await assembleChat(toSse(recorded.chunks));
    service.script = async ({ writer, partial, end }) => {
      const { partials, terminal } = adaptChunks(writer, recorded.chunks, body);
      for (const json of partials) await partial(json);
      end(terminal);
    };
    const chunks = [];
    const stream = await client.chat.completions.create({
      ...(name === "chat-usage" && { stream_options: { include_usage: true } }),
      model,
      messages,
      stream: true,
    });
    for await (const chunk of stream) chunks.push(chunk);
    if (asksForChunks) expect(chunks).toEqual(recorded.chunks);
    else expect(chunks.length).toBeGreaterThan(2);
    expect(service.requests[0]?.policy.openaiChunk ?? false).toBe(asksForChunks);
    const whole = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
    const essence = (choices: unknown) => JSON.parse(JSON.stringify(choices)) as { message: { tool_calls?: [] } }[];
    expect(essence(whole.choices).map(({ message }) => message.tool_calls ?? [])).toEqual(
      (body["choices"] as { message: { tool_calls?: [] } }[]).map(({ message }) => message.tool_calls ?? []),
    );
    expect(whole.choices.map(({ message, finish_reason }) => [message.content ?? "", finish_reason])).toEqual(
      (body["choices"] as typeof whole.choices).map(({ message, finish_reason }) => [
        message.content ?? "",
        finish_reason,
      ]),
    );
  });

  it("runs tools with the SDK's own runner", async () => {
    const place = { index: 0, itemId: "tool-call-0-0", callId: "call_1" };
    const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } };
    service.script = async ({ envelope, writer, partial, end }) => {
      const isSecond = (envelope.body["messages"] as { role: string }[]).some(({ role }) => role === "tool");
      if (isSecond) {
        await partial(writer.textDelta(0, "18 C"));
        end(
          writer.completed({
            ...completion,
            choices: [{ ...completion.choices[0], message: { role: "assistant", content: "18 C" } }],
          }),
        );
        return;
      }
      await partial(writer.toolCallStarted(place, "weather"));
      await partial(writer.toolCallDelta("call_1", '{"city":'));
      await partial(writer.toolCallDelta("call_1", '"Paris"}'));
      await partial(writer.toolCallCompleted("call_1"));
      const message = { role: "assistant", content: null, tool_calls: [call] };
      end(writer.completed({ ...completion, choices: [{ index: 0, message, finish_reason: "tool_calls" }] }));
    };
    const asked: unknown[] = [];
    const runner = client.chat.completions.runTools({
      model,
      messages,
      stream: true,
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: JSON.parse,
            function: (args: { city: string }) => {
              asked.push(args.city);
              return "18";
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe("18 C");
    expect(asked).toEqual(["Paris"]);
    expect(service.requests[1]?.body["messages"]).toMatchObject([
      {},
      { tool_calls: [call] },
      { role: "tool", content: "18" },
    ]);
  });

  it("streams what the real peer sent", async () => {
    service.script = replay(exchange("chat-stream"));
    const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    const { choices, usage } = await stream.finalChatCompletion();
    expect(choices).toMatchObject([{ message: { content: "Hello, wörld ✓" }, finish_reason: "stop" }]);
    expect(usage).toEqual({ prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 });
    service.script = replay(exchange("chat-tools"));
    const tools = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
    expect(tools.choices[0]?.message.tool_calls).toMatchObject([
      { id: "call_1", function: { name: "lookup", arguments: '{"key":"value"}' } },
    ]);
  });
});

describe("responses", () => {
  it("answers", async () => {
    const { events } = recordedResponse("text");
    const body = events.at(-1)?.["response"] as object;
    service.script = ({ writer, end }) => end(writer.completed(body));
    expect((await client.responses.create({ model, input: "Hi" })).output_text).toBe("The capital of France is Paris.");
  });

  it.each([true, false])("streams, with the service's own events: %s", async (asksForChunks) => {
    setUp({ asksForChunks });
    const { events } = recordedResponse("tools");
    service.script = async ({ writer, partial, end }) => {
      const { partials, terminal } = adaptResponse(writer, events);
      for (const json of partials) await partial(json);
      end(terminal);
    };
    const seen: { type: string }[] = [];
    for await (const event of await client.responses.create({ model, input: "Hi", stream: true })) seen.push(event);
    if (asksForChunks) expect(seen).toEqual(events);
    expect(seen.at(-1)?.type).toBe("response.completed");
    const final = await client.responses.stream({ model, input: "Hi" }).finalResponse();
    expect(final.output).toMatchObject([{ type: "function_call", arguments: '{\n    "city": "Paris"\n}' }]);
  });

  it("streams what the real peer sent", async () => {
    service.script = replay(exchange("responses"));
    const stream = client.responses.stream({ model, input: "Hi" });
    let text = "";
    stream.on("response.output_text.delta", ({ delta }) => {
      text += delta;
    });
    expect((await stream.finalResponse()).output_text).toBe("Hello");
    expect(text).toBe("Hello");
  });
});

describe("models and embeddings", () => {
  it("lists models and finds one", async () => {
    service.script = ({ writer, end }) =>
      end(
        writer.completed({
          object: "list",
          data: [{ id: "acme/tiny:q4", object: "model", created: 0, owned_by: "a" }],
        }),
      );
    const ids = [];
    for await (const entry of client.models.list()) ids.push(entry.id);
    expect(ids).toEqual(["acme/tiny:q4"]);
    expect(await client.models.retrieve("acme/tiny:q4")).toMatchObject({ id: "acme/tiny:q4", owned_by: "a" });
    await expect(client.models.retrieve("none")).rejects.toMatchObject({ status: 404, code: "model_not_found" });
    expect(new Set(service.requests.map(({ operation }) => operation))).toEqual(new Set(["models.list"]));
  });

  it("embeds, in the form that the SDK asks for", async () => {
    const vector = [0.25, -0.5];
    service.script = ({ envelope, writer, end }) => {
      const isBase64 = envelope.body["encoding_format"] === "base64";
      const embedding = isBase64 ? Buffer.from(Float32Array.from(vector).buffer).toString("base64") : vector;
      end(writer.completed({ object: "list", model, data: [{ object: "embedding", index: 0, embedding }] }));
    };
    expect((await client.embeddings.create({ model, input: "Hi" })).data[0]?.embedding).toEqual(vector);
    const asFloats = await client.embeddings.create({ model, input: "Hi", encoding_format: "float" });
    expect(asFloats.data[0]?.embedding).toEqual(vector);
  });
});

describe("errors", () => {
  it.each([
    [profileError("invalid_body", "Wrong.", "temperature"), OpenAI.BadRequestError, 400],
    [profileError("invalid_api_key", "Who?"), OpenAI.AuthenticationError, 401],
    [profileError("insufficient_scope", "No."), OpenAI.PermissionDeniedError, 403],
    [profileError("unsupported_model", "Which?", "model"), OpenAI.NotFoundError, 404],
    [profileError("rate_limit_exceeded", "Slow."), OpenAI.RateLimitError, 429],
    [profileError("internal_error", "Oh."), OpenAI.InternalServerError, 500],
    [profileError("backend_overload", "Full."), OpenAI.InternalServerError, 503],
  ])("%j is thrown as its own class, before a stream as well", async (error, type, status) => {
    service.script = ({ writer, end }) => end(writer.failed(error, { diagnostics: { retryAfterMs: 1500 } }));
    for (const stream of [false, true]) {
      const thrown = await client.chat.completions
        .create({ model, messages, stream })
        .catch((reason: unknown) => reason);
      expect(thrown).toBeInstanceOf(type);
      const { code, type: kind, param = null } = { param: undefined, ...error };
      expect(thrown).toMatchObject({ status, code, type: kind, param, error: { message: error.message } });
      const { headers } = thrown as APIError;
      expect(headers?.get("retry-after")).toBe("2");
      expect(headers?.get("retry-after-ms")).toBe("1500");
    }
  });

  it("of the real peer have their status, though it says 500 for all", async () => {
    service.script = replay(exchange("error-model"));
    await expect(client.chat.completions.create({ model, messages })).rejects.toThrow(OpenAI.NotFoundError);
    service.script = replay(exchange("drop"));
    await expect(client.chat.completions.create({ model, messages, stream: true })).rejects.toMatchObject({
      status: 503,
    });
  });

  it.each(["chat", "responses"])("inside a stream of %s are thrown by its reader", async (api) => {
    service.script = replay(exchange("error-midstream"));
    const read = async (): Promise<void> => {
      const stream =
        api === "chat"
          ? await client.chat.completions.create({ model, messages, stream: true })
          : await client.responses.create({ model, input: "Hi", stream: true });
      for await (const _chunk of stream);
    };
    await expect(read()).rejects.toThrow("The backend stopped.");
  });

  it("for what is not carried", async () => {
    await expect(client.files.list()).rejects.toMatchObject({ status: 404, code: "unknown_url" });
    await expect(client.responses.retrieve("resp_1")).rejects.toMatchObject({ status: 404 });
    const wrong = await overNnrp("http://x/v1/chat/completions", { method: "POST", body: "{" });
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ error: { code: "invalid_body", type: "invalid_request_error" } });
    expect(service.requests).toEqual([]);
  });

  it("for a session that is refused", async () => {
    service.decision = { accept: false, code: SessionErrorCode.authFailed, reason: "wrong token" };
    await expect(client.models.list()).rejects.toThrow(OpenAI.AuthenticationError);
    service.decision = { accept: false, code: SessionErrorCode.sessionLimitReached, reason: "full" };
    await expect(client.models.list()).rejects.toMatchObject({ status: 503 });
    service.decision = { accept: true };
    service.script = ({ writer, end }) => end(writer.completed({ object: "list", data: [] }));
    expect((await client.models.list()).data).toEqual([]);
  });
});

describe("aborting reaches the service", () => {
  it("when the reader leaves the stream", async () => {
    answerEndlessly();
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    for await (const _chunk of stream) break;
    await expect.poll(() => service.operations).toBe(0);
    expect(service.stops).toMatchObject([{ kind: "cancel" }]);
  });

  it("when the signal fires in the stream", async () => {
    answerEndlessly();
    const controller = new AbortController();
    const { signal } = controller;
    const stream = await client.chat.completions.create({ model, messages, stream: true }, { signal });
    let count = 0;
    for await (const _chunk of stream) {
      count += 1;
      controller.abort();
    }
    expect(count).toBeGreaterThan(0);
    await expect.poll(() => service.stops.length).toBe(1);
  });

  it("when the body's reader is cancelled", async () => {
    answerEndlessly();
    const body = JSON.stringify({ model, messages, stream: true });
    const response = await overNnrp("http://x/v1/chat/completions", { method: "POST", body });
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await expect.poll(() => service.stops.length).toBe(1);
  });

  it.each([true, false])("while nothing has come yet (stream: %s)", async (stream) => {
    const asked = new Promise<void>((resolve) => {
      service.script = () => resolve();
    });
    const controller = new AbortController();
    const { signal } = controller;
    const answer = client.chat.completions.create({ model, messages, stream }, { signal });
    const thrown = expect(answer).rejects.toThrow(APIUserAbortError);
    await asked;
    controller.abort();
    await thrown;
    await expect.poll(() => service.stops.length).toBe(1);
  });

  it("by the SDK's own timeout", async () => {
    service.script = ({ writer, end }) => end(writer.completed({ object: "list", data: [] }));
    // A session that is open: the request is on its way before the timeout.
    await client.models.list();
    service.script = () => {};
    const answer = client.chat.completions.create({ model, messages }, { timeout: 30 });
    await expect(answer).rejects.toThrow(APIConnectionTimeoutError);
    await expect.poll(() => service.stops.length).toBe(1);
  });

  it("by a timeout of this side, which is an answer", async () => {
    setUp({ timeoutMs: 30 });
    service.script = () => {};
    await expect(client.chat.completions.create({ model, messages })).rejects.toMatchObject({
      status: 504,
      code: "request_timeout",
    });
    await expect.poll(() => service.requests[0]?.policy.timeoutMs).toBe(30);
  });

  it("not at all when it fired before", async () => {
    const signal = AbortSignal.abort();
    await expect(overNnrp("http://x/v1/models", { signal })).rejects.toThrow("aborted");
    expect(service.connections).toBe(0);
  });
});

describe("the connection", () => {
  const list = { object: "list", data: [] };

  it("is one for all requests, opened when it is needed", async () => {
    service.script = ({ writer, end }) => end(writer.completed(list));
    expect(service.connections).toBe(0);
    await Promise.all([client.models.list(), client.models.list()]);
    await client.models.list();
    expect(service.connections).toBe(1);
  });

  it("is opened again after it was lost", async () => {
    service.script = ({ writer, end }) => end(writer.completed(list));
    await client.models.list();
    service.script = () => service.dropConnections();
    await expect(client.models.list()).rejects.toThrow(APIConnectionError);
    service.script = ({ writer, end }) => end(writer.completed(list));
    await client.models.list();
    expect(service.connections).toBe(2);
  });

  it("lost before the answer is tried again by the SDK's own retries", async () => {
    let tries = 0;
    service.script = ({ writer, end }) => {
      tries += 1;
      if (tries === 1) service.dropConnections();
      else end(writer.completed(list));
    };
    expect((await client.withOptions({ maxRetries: 1 }).models.list()).data).toEqual([]);
    expect(tries).toBe(2);
  });

  it("lost in a stream breaks the stream", async () => {
    service.script = async ({ writer, partial, operation }) => {
      await partial(writer.textDelta(0, "x"));
      await new Promise((resolve) => setImmediate(resolve));
      if (!operation.finished) service.dropConnections();
    };
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const read = async (): Promise<void> => {
      for await (const _chunk of stream);
    };
    await expect(read()).rejects.toThrow("terminated");
  });

  it("that can't be made is a failed fetch", async () => {
    const failing = nnrpFetch(async () => {
      throw new Error("refused");
    });
    await expect(failing("http://x/v1/models")).rejects.toMatchObject({ name: "TypeError", message: "fetch failed" });
  });

  it("has as many requests in flight as it was told", async () => {
    setUp({ maxInFlight: 2 });
    const ends: (() => void)[] = [];
    service.script = ({ writer, end }) => void ends.push(() => end(writer.completed(list)));
    const lists = [client.models.list(), client.models.list(), client.models.list()];
    await expect.poll(() => ends.length).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.operations).toBe(2);
    ends[0]?.();
    await expect.poll(() => ends.length).toBe(3);
    for (const end of ends.slice(1)) end();
    expect(await Promise.all(lists)).toHaveLength(3);
  });
});

it("keeps the key when it is told to, and passes a trace on", async () => {
  setUp({ sendAuthorization: false });
  service.script = async ({ writer, end }) => {
    await new Promise((resolve) => setImmediate(resolve));
    end(writer.completed({ object: "list", data: [] }));
  };
  const headers = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };
  await client.models.list({ headers });
  expect(service.requests[0]?.policy).toEqual({});
  expect(service.traces).toMatchObject([{ traceId: 0xa3ce929d0e0e4736n, spanId: 0x00f067aa0ba902b7n }]);
});

it("takes a Request as well as an address with options", async () => {
  service.script = async ({ writer, partial, end }) => {
    await partial(writer.textDelta(0, "x"));
    end(writer.completed(completion));
  };
  const body = JSON.stringify({ model, messages, stream: true });
  const response = await overNnrp(new Request("http://x/chat/completions", { method: "POST", body }));
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const text = await response.text();
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(dataOf(text)[0]).toMatchObject({ object: "chat.completion.chunk", model });
  expect(service.requests[0]?.body["model"]).toBe(model);
  const bytes = await overNnrp(new URL("http://x/chat/completions"), {
    method: "post",
    body: new TextEncoder().encode(JSON.stringify({ model, messages })),
  });
  expect(await bytes.json()).toEqual(completion);
});
