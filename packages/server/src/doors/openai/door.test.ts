import { CoreError } from "@plenum/core";
import { describe, expect, it } from "vitest";
import { answerOf } from "./testing/answers.ts";
import { readEvents } from "./testing/read-events.ts";
import { errorOf, setUp } from "./testing/set-up.ts";

const chat = "/v1/chat/completions";
const body = { model: "m-tiny", messages: [{ role: "user", content: "Hi" }] };

describe("models", () => {
  it("are found by id however it is written, and by alias (CAT-01)", async () => {
    const { get } = setUp();
    for (const written of ["acme/tiny:q4", "acme%2Ftiny:q4", "acme%2Ftiny%3Aq4", "scripted/acme/tiny:q4"]) {
      const answer = await get(`/v1/models/${written}`);
      expect(answer.status, written).toBe(200);
      expect(JSON.parse(answer.text)).toEqual({
        id: "acme/tiny:q4",
        object: "model",
        created: 1_700_000_000,
        owned_by: "scripted",
      });
    }
    expect(JSON.parse((await get("/v1/models/tiny")).text).id).toBe("m-tiny");
    const other = await get("/v1/models/acme%2Fother");
    expect(other.status).toBe(404);
    expect(errorOf(other).code).toBe("model_not_found");
  });

  it("are those that the token may use", async () => {
    const sha256 = (text: string): string => text.padStart(64, "0");
    const tokens = [{ principal: "ann", sha256: sha256("t"), scopes: ["read"] as const, models: ["m-*"] }];
    const { get } = setUp({ tokens, sha256 });
    const headers = { authorization: "bearer t" };
    const { object, data } = JSON.parse((await get("/v1/models", headers)).text);
    expect({ object, ids: data.map(({ id }: { id: string }) => id) }).toEqual({ object: "list", ids: ["m-tiny"] });
    expect((await get("/v1/models/t-tiny", headers)).status).toBe(404);
  });
});

describe("embeddings", () => {
  it("come as base64 or numbers (EMB-01)", async () => {
    const { backend, post } = setUp();
    backend.embed = async ({ inputs }) => ({
      vectors: inputs.map(() => Float32Array.of(1, -2, 0.5)),
      inputTokens: 2,
      loadMs: 0,
    });
    const base64 = await post("/v1/embeddings", { model: "e-tiny", input: "hello", encoding_format: "base64" });
    expect(JSON.parse(base64.text).data[0].embedding).toBe("AACAPwAAAMAAAAA/");
    const plain = await post("/v1/embeddings", { model: "e-tiny", input: ["hello", "hello"] });
    expect(JSON.parse(plain.text)).toEqual({
      object: "list",
      data: [0, 1].map((index) => ({ object: "embedding", index, embedding: [1, -2, 0.5] })),
      model: "e-tiny",
      usage: { prompt_tokens: 2, total_tokens: 2 },
    });
  });

  it.each([
    ["a text", "a", ["a"]],
    ["texts", ["a", "b"], ["a", "b"]],
    ["token ids", [1, 2], [[1, 2]]],
    ["lists of token ids", [[1, 2], [3]], [[1, 2], [3]]],
  ])("take %s", async (_name, input, inputs) => {
    const { backend, post } = setUp();
    expect((await post("/v1/embeddings", { model: "e-tiny", input, dimensions: 2 })).status).toBe(200);
    expect(backend.embeddingRequests).toMatchObject([{ inputs, dimensions: 2, truncate: false }]);
  });
});

describe("completions", () => {
  const path = "/v1/completions";
  const bytes = (token: string): number[] => [...new TextEncoder().encode(token)];
  const logprob = (token: string, value: number) => ({
    token,
    logprob: value,
    bytes: bytes(token),
    top: [{ token, logprob: value, bytes: bytes(token) }],
  });
  const answer = answerOf(
    { type: "accepted", inputTokens: 1 },
    { type: "text", candidate: 0, delta: " a", logprobs: [logprob(" a", -1)] },
    { type: "text", candidate: 0, delta: "b", logprobs: [logprob("b", -2)] },
    { type: "finish", candidate: 0, finishReason: "length" },
    { type: "usage", usage: { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 } },
  );

  it("continue a prompt as it is, 16 tokens unless asked for more", async () => {
    const { backend, post } = setUp();
    backend.answer = answer;
    const whole = JSON.parse((await post(path, { model: "m-tiny", prompt: ["Hi"], logprobs: 1, suffix: "." })).text);
    expect(whole).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      model: "m-tiny",
      choices: [
        {
          index: 0,
          text: " ab",
          finish_reason: "length",
          logprobs: {
            tokens: [" a", "b"],
            token_logprobs: [-1, -2],
            top_logprobs: [{ " a": -1 }, { b: -2 }],
            text_offset: [0, 2],
          },
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    });
    expect(backend.requests[0]).toMatchObject({
      input: { kind: "completion", prompt: "Hi", suffix: ".", raw: true },
      output: { maxTokens: 16 },
      sampling: { logprobs: 1 },
    });
  });

  it("stream", async () => {
    const { backend, post } = setUp();
    backend.answer = answer;
    const streamed = await post(path, {
      model: "m-tiny",
      prompt: "Hi",
      stream: true,
      stream_options: { include_usage: true },
      logprobs: 0,
    });
    const events = readEvents(streamed.text);
    expect(events.at(-1)?.data).toBe("[DONE]");
    const chunks = events.slice(0, -1).map(({ json }) => json);
    expect(chunks.map((chunk) => chunk.choices[0]?.text)).toEqual([" a", "b", "", undefined]);
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, "length", undefined]);
    expect(chunks[1].choices[0].logprobs).toMatchObject({ tokens: ["b"], text_offset: [2] });
    expect(chunks.map((chunk) => chunk.usage?.total_tokens ?? null)).toEqual([null, null, null, 3]);
  });
});

describe("errors", () => {
  it.each([false, true])(
    "before the first output have their own status (ERR-01, CTX-01; streamed: %s)",
    async (stream) => {
      const { backend, post } = setUp();
      const problem = new CoreError("context-length-exceeded", "5000 tokens do not fit 4096.", { limit: 4096 });
      backend.answer = async function* () {
        yield [{ type: "accepted" }];
        throw problem;
      };
      const answer = await post(chat, { ...body, stream });
      expect(answer.status).toBe(400);
      expect(answer.headers["content-type"]).toMatch(/^application\/json/);
      expect(errorOf(answer)).toEqual({
        message: problem.message,
        type: "invalid_request_error",
        param: null,
        code: "context_length_exceeded",
      });
    },
  );

  it("say when to come back", async () => {
    const { backend, post } = setUp();
    backend.answer = () => {
      throw new CoreError("overloaded", "The runtime is full.", { retryAfterMs: 1_200 });
    };
    const answer = await post(chat, { ...body, stream: true });
    expect(answer.status).toBe(503);
    expect(answer.headers).toMatchObject({ "retry-after": "2" });
    expect(answer.headers).not.toHaveProperty("x-should-retry");
  });

  it.each([400, 404, 409, 413, 422])("keep a runtime's own %s (ERR-03)", async (backendStatus) => {
    const { backend, post } = setUp();
    backend.answer = () => {
      throw new CoreError("backend-refused", "model busy", { backendStatus });
    };
    const answer = await post(chat, body);
    expect(answer.status).toBe(backendStatus);
    expect(errorOf(answer)).toEqual({
      message: "model busy",
      type: "invalid_request_error",
      param: null,
      code: null,
    });
  });

  it("of a field that the runtime finds carry this API's name for it", async () => {
    const { backend, post } = setUp();
    const format = { type: "json_schema", json_schema: { name: "a", schema: { $ref: "#/x" } } };
    backend.answer = () => {
      throw new CoreError("unsupported-capability", "The schema can't be held.", { param: "output.format.schema" });
    };
    const whole = await post(chat, { ...body, response_format: format });
    expect(errorOf(whole).param).toBe("response_format.json_schema.schema");
    const { json_schema: schema } = format;
    const other = await post("/v1/responses", {
      model: "m-tiny",
      input: "Hi",
      text: { format: { type: "json_schema", ...schema } },
    });
    expect(errorOf(other).param).toBe("text.format.schema");
  });
});
