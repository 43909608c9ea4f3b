import { describe, expect, it } from "vitest";
import { errorFacts } from "./error-facts.ts";
import { streamedError, upstreamError } from "./upstream-errors.ts";

function answer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { status, headers, body: typeof body === "string" ? undefined : body, text };
}

/** As recorded from llama-server 0.6.0-dev, vLLM 0.32.0 and Ollama 0.17.4, and shapes of cases ERR-03. */
const answers: readonly [string, number, unknown, object, RegExp][] = [
  [
    "llama-server overflow",
    400,
    {
      error: {
        code: 400,
        message: "request (3031 tokens) exceeds the available context size (2048 tokens), try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 3031,
        n_ctx: 2048,
      },
    },
    { code: "context-length-exceeded", details: { limit: 2048, requested: 3031, param: "input" } },
    /3031 tokens/,
  ],
  [
    "llama-server too long to embed",
    500,
    {
      error: {
        code: 500,
        message:
          "input (702 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
        type: "server_error",
      },
    },
    { code: "context-length-exceeded", details: { limit: 512, requested: 702 } },
    /702/,
  ],
  [
    "llama-server loading",
    503,
    { error: { message: "Loading model", type: "unavailable_error", code: 503 } },
    { code: "model-loading" },
    /Loading model/,
  ],
  [
    "llama-server no embeddings",
    501,
    {
      error: {
        code: 501,
        message: "This server does not support embeddings. Start it with `--embeddings`",
        type: "not_supported_error",
      },
    },
    { code: "unsupported-capability", details: { capability: "embeddings" } },
    /--embeddings/,
  ],
  [
    "llama-server image",
    500,
    {
      error: {
        code: 500,
        message: "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        type: "server_error",
      },
    },
    { code: "unsupported-capability", details: { capability: "vision" } },
    /mmproj/,
  ],
  [
    "llama-server bad grammar",
    400,
    {
      error: {
        code: 400,
        message: "Failed to initialize samplers: failed to parse grammar",
        type: "invalid_request_error",
      },
    },
    { code: "backend-refused", details: { backendStatus: 400 } },
    /grammar/,
  ],
  [
    "llama-server wrong key",
    401,
    { error: { message: "Invalid API Key sk-secret123", type: "authentication_error", code: 401 } },
    { code: "backend-error" },
    /^The runtime does not accept this service's key/,
  ],
  [
    "vLLM overflow",
    400,
    {
      error: {
        message:
          "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, which exceeds this limit even without any output tokens.",
        type: "BadRequestError",
        param: "input_tokens",
        code: 400,
      },
    },
    { code: "context-length-exceeded", details: { limit: 2048, requested: 2049 } },
    /2049/,
  ],
  [
    "vLLM unknown model",
    404,
    {
      error: {
        message: "The model `nope` does not exist. Valid aliases: smollm2.",
        type: "NotFoundError",
        param: "model",
        code: 404,
      },
    },
    { code: "model-not-found", details: { param: "model" } },
    /nope/,
  ],
  ["vLLM wrong key", 403, { error: "Unauthorized" }, { code: "backend-error" }, /apiKey/],
  [
    "vLLM no such path",
    404,
    { detail: "Not Found" },
    { code: "backend-refused", details: { backendStatus: 404 } },
    /Not Found/,
  ],
  [
    "vLLM max_tokens",
    400,
    {
      error: {
        message:
          "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer output tokens. (parameter=max_tokens, value=5000)",
        type: "BadRequestError",
        param: "max_tokens",
        code: 400,
      },
    },
    { code: "backend-refused", details: { param: "max_tokens", backendStatus: 400 } },
    /fewer/,
  ],
  [
    "Ollama unknown model",
    404,
    { error: "model 'no-such-model' not found" },
    { code: "model-not-found" },
    /no-such-model/,
  ],
  [
    "Ollama overflow",
    400,
    { error: "the input length exceeds the context length" },
    { code: "context-length-exceeded" },
    /input length/,
  ],
  [
    "Ollama busy",
    503,
    { error: "server busy, please try again.  maximum pending requests exceeded" },
    { code: "overloaded" },
    /server busy/,
  ],
  [
    "Ollama no tools",
    400,
    { error: "registry.example/x does not support tools" },
    { code: "unsupported-capability", details: { capability: "tools" } },
    /tools/,
  ],
  [
    "detail as text",
    422,
    { detail: "model busy" },
    { code: "backend-refused", details: { backendStatus: 422 } },
    /model busy/,
  ],
  [
    "detail as list",
    422,
    { detail: [{ loc: ["body", "x"], msg: "field required", type: "missing" }] },
    { code: "backend-refused" },
    /field required/,
  ],
  ["error as text", 400, { error: "bad" }, { code: "backend-refused" }, /^bad\.$/],
  [
    "flat",
    400,
    { object: "error", message: "bad", type: "BadRequestError", param: null, code: 400 },
    { code: "backend-refused" },
    /^bad\.$/,
  ],
  [
    "in a list",
    400,
    [{ error: { code: 400, message: "API thing", status: "INVALID_ARGUMENT" } }],
    { code: "backend-refused" },
    /API thing/,
  ],
  [
    "HTML",
    502,
    "<html><h1>502 Bad Gateway</h1></html>",
    { code: "backend-error" },
    /^The runtime answered 502 without saying why\.$/,
  ],
  ["empty", 500, "", { code: "backend-error" }, /answered 500/],
  ["plain text", 500, "out of memory", { code: "backend-error" }, /^out of memory\.$/],
  ["redirect", 302, "", { code: "backend-error" }, /baseUrl/],
  [
    "conflict",
    409,
    { error: { message: "busy" } },
    { code: "backend-refused", details: { backendStatus: 409 } },
    /busy/,
  ],
  ["too large", 413, "", { code: "backend-refused", details: { backendStatus: 413 } }, /413/],
];

describe("upstreamError", () => {
  it.each(answers)("%s", (_name, status, body, expected, message) => {
    const error = upstreamError(answer(status, body), { model: "m" });
    expect(error).toMatchObject(expected);
    expect(error.details.model).toBe("m");
    expect(error.detail).toMatch(message);
  });

  it.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after-ms": "250" }, 250],
    [{ "retry-after": "Mon, 30 Nov 2026 12:00:05 GMT", date: "Mon, 30 Nov 2026 12:00:00 GMT" }, 5_000],
    [{ "retry-after": "soon" }, undefined],
    [{}, undefined],
  ])("429 with %j is overloaded with that wait", (headers, retryAfterMs) => {
    const error = upstreamError(answer(429, { error: { message: "slow down" } }, headers));
    expect(error.code).toBe("overloaded");
    expect(error.details.retryAfterMs).toBe(retryAfterMs);
  });

  it("keeps addresses, keys, stacks and markup out of the message", () => {
    const message =
      "failed at http://10.0.0.1:8000/v1?key=abc with key sk-abcdefghijk, Bearer abc.def <b>why</b> at 127.0.0.1:99\n    at f (/srv/app.js:1:2)";
    const { detail } = upstreamError(answer(500, { error: { message } }));
    expect(detail).toBe("failed at … with key …, … why at …");
    expect(upstreamError(answer(500, { error: "x".repeat(5_000) })).detail.length).toBeLessThanOrEqual(600);
  });
});

describe("streamedError", () => {
  it.each([
    [
      {
        error: {
          code: 400,
          message: "the request exceeds the available context size",
          type: "exceed_context_size_error",
        },
      },
      "context-length-exceeded",
    ],
    [{ error: { code: 503, message: "no", type: "x" } }, "overloaded"],
    [{ error: { message: "no", type: "invalid_request_error" } }, "backend-refused"],
    [{ error: { message: "no" } }, "backend-error"],
    [{ error: "boom" }, "backend-error"],
    [{ object: "error", message: "no", code: 40001 }, "backend-error"],
    [{ error: { code: "429", message: "no" } }, "overloaded"],
  ])("%j is %s", (body, code) => expect(streamedError(body).code).toBe(code));
});

it("an error page that is made to be slow is read as quickly as any other", () => {
  expect(errorFacts(undefined, "<a".repeat(128_000)).message.length).toBeLessThan(10_000);
  expect(errorFacts(undefined, `<html>${"x".repeat(100_000)}`).message).toBe("");
});
