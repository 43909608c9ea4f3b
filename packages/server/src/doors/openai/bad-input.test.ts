import { expect, it } from "vitest";
import { errorTable } from "./errors.ts";
import { errorOf, setUp } from "./testing/set-up.ts";

const chat = "/v1/chat/completions";
const responses = "/v1/responses";
const completions = "/v1/completions";
const embeddings = "/v1/embeddings";
const model = "m-tiny";
const messages = [{ role: "user", content: "Hi" }];
const user = (content: unknown) => ({ model, messages: [{ role: "user", content }] });
const image = (url: string) => [{ type: "image_url", image_url: { url } }];
const fn = (name: string, parameters: unknown = { type: "object" }) => ({
  type: "function",
  function: { name, parameters },
});

/** Path, body, and what the error says: its `param`, and words of its message. */
const rows: readonly (readonly [name: string, path: string, body: unknown, param: string | null, words: RegExp])[] = [
  ["an empty body", chat, "", null, /empty/],
  ["no JSON", chat, "{", null, /not valid JSON/],
  ["a list", chat, "[]", null, /object/],
  ["no model", chat, { messages }, "model", /is missing/],
  ["an empty model", chat, { model: "", messages }, "model", /./],
  ["a model that is a number", chat, { model: 3, messages }, "model", /string/],
  ["no messages", chat, { model }, "messages", /is missing/],
  ["no message", chat, { model, messages: [] }, "messages", /at least one/],
  ["messages that are a text", chat, { model, messages: "Hi" }, "messages", /array/],
  ["an unknown role", chat, { model, messages: [{ role: "wizard", content: "" }] }, "messages[0].role", /developer/],
  [
    "the deprecated role",
    chat,
    { model, messages: [{ role: "function", name: "f", content: "" }] },
    "messages[0].role",
    /tool/,
  ],
  ["a user's null content", chat, user(null), "messages[0].content", /text or a list/],
  ["a part of no type", chat, user([{ text: "Hi" }]), "messages[0].content[0].type", /image_url/],
  ["a part without its text", chat, user([{ type: "text" }]), "messages[0].content[0].text", /missing/],
  ["audio", chat, user([{ type: "input_audio", input_audio: {} }]), "messages[0].content[0]", /text and images/],
  ["a file", chat, user([{ type: "file", file: {} }]), "messages[0].content[0]", /text and images/],
  [
    "an image of the web",
    chat,
    user(image("https://x.test/a.png")),
    "messages[0].content[0].image_url.url",
    /data: URL/,
  ],
  [
    "an image that is none",
    chat,
    user(image("data:text/plain;base64,aGk=")),
    "messages[0].content[0].image_url.url",
    /image/,
  ],
  [
    "images on a text model",
    chat,
    { ...user(image("data:image/png;base64,iVBORw0KGgo=")), model: "t-tiny" },
    "messages",
    /can't see images/,
  ],
  [
    "an assistant that says nothing",
    chat,
    { model, messages: [{ role: "assistant" }] },
    "messages[0].content",
    /content or tool_calls/,
  ],
  [
    "a tool's answer to nothing",
    chat,
    { model, messages: [{ role: "tool", content: "x" }] },
    "messages[0].tool_call_id",
    /missing/,
  ],
  [
    "a call whose arguments are no object",
    chat,
    {
      model,
      messages: [
        ...messages,
        { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "[1]" } }] },
      ],
    },
    "messages[1].tool_calls[0].function.arguments",
    /JSON text of an object/,
  ],
  ["a temperature in words", chat, { model, messages, temperature: "hot" }, "temperature", /number/],
  ["a temperature out of range", chat, { model, messages, temperature: 2.5 }, "temperature", /from 0 to 2/],
  ["top_p out of range", chat, { model, messages, top_p: 2 }, "top_p", /from 0 to 1/],
  ["no tokens", chat, { model, messages, max_tokens: 0 }, "max_tokens", /^max_tokens must/],
  [
    "no completion tokens",
    chat,
    { model, messages, max_completion_tokens: 0 },
    "max_completion_tokens",
    /^max_completion_tokens must/,
  ],
  ["no answers", chat, { model, messages, n: 0 }, "n", /^n must/],
  ["a hundred answers", chat, { model, messages, n: 100 }, "n", /from 1 to 8/],
  ["too many alternatives", chat, { model, messages, logprobs: true, top_logprobs: 50 }, "top_logprobs", /20/],
  ["alternatives without logprobs", chat, { model, messages, top_logprobs: 2 }, "top_logprobs", /logprobs: true/],
  ["an empty stop", chat, { model, messages, stop: "" }, "stop", /empty/],
  ["a bias for a word", chat, { model, messages, logit_bias: { hi: 1 } }, "logit_bias", /token id/],
  ["a verbosity", chat, { model, messages, verbosity: "low" }, "verbosity", /length/],
  ["audio wanted", chat, { model, messages, modalities: ["text", "audio"] }, "modalities", /text/],
  ["a custom tool", chat, { model, messages, tools: [{ type: "custom", custom: {} }] }, "tools[0].type", /function/],
  [
    "a tool without a name",
    chat,
    { model, messages, tools: [{ type: "function", function: {} }] },
    "tools[0].function.name",
    /missing/,
  ],
  [
    "a tool's name with a space",
    chat,
    { model, messages, tools: [fn("a b")] },
    "tools[0].function.name",
    /no tool name/,
  ],
  [
    "two tools of one name",
    chat,
    { model, messages, tools: [fn("a"), fn("a")] },
    "tools[1].function.name",
    /two tools/,
  ],
  [
    "parameters that are no schema",
    chat,
    { model, messages, tools: [fn("a", "x")] },
    "tools[0].function.parameters",
    /JSON Schema/,
  ],
  ["required among no tools", chat, { model, messages, tools: [], tool_choice: "required" }, "tools", /needs tools/],
  [
    "a choice of no tool",
    chat,
    { model, messages, tools: [fn("a")], tool_choice: { type: "function", function: { name: "b" } } },
    "tool_choice",
    /none of the tools/,
  ],
  [
    "allowed_tools",
    chat,
    { model, messages, tools: [fn("a")], tool_choice: { type: "allowed_tools" } },
    "tool_choice.type",
    /allowed_tools/,
  ],
  [
    "required tools on a model that has none",
    chat,
    { model: "t-tiny", messages, tools: [fn("a")], tool_choice: "required" },
    "tools",
    /can't call tools/,
  ],
  [
    "a format of no kind",
    chat,
    { model, messages, response_format: { type: "xml" } },
    "response_format.type",
    /json_schema/,
  ],
  [
    "a schema that is missing",
    chat,
    { model, messages, response_format: { type: "json_schema", json_schema: { name: "a" } } },
    "response_format.json_schema.schema",
    /JSON Schema/,
  ],
  ["chat on an embedding model", chat, { model: "e-tiny", messages }, "messages", /can't chat/],

  ["no input", responses, { model }, "input", /is missing, it must be a text or a list/],
  ["no item", responses, { model, input: [] }, "input", /at least one/],
  ["an unknown item", responses, { model, input: [{ type: "web_search_call" }] }, "input[0].type", /function_call/],
  [
    "a reference to no item",
    responses,
    { model, input: [{ id: "msg_nope_0" }] },
    "input[0].id",
    /send the item itself/,
  ],
  ["a message without a role", responses, { model, input: [{ content: "Hi" }] }, "input[0].role", /developer/],
  [
    "an image by file",
    responses,
    { model, input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] },
    "input[0].content[0].file_id",
    /image_url/,
  ],
  [
    "an answer of images",
    responses,
    {
      model,
      input: [
        {
          type: "function_call_output",
          call_id: "c",
          output: [{ type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" }],
        },
      ],
    },
    "input[0].output[0]",
    /text/,
  ],
  [
    "arguments that are no JSON",
    responses,
    {
      model,
      input: [
        { type: "reasoning", summary: [] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{" },
      ],
    },
    "input[1].arguments",
    /JSON text/,
  ],
  ["in the background, unstored", responses, { model, input: "Hi", background: true, store: false }, "store", /stored/],
  ["a conversation", responses, { model, input: "Hi", conversation: "conv_1" }, "conversation", /previous_response_id/],
  ["a tool of no kind", responses, { model, input: "Hi", tools: [{ type: "teleport" }] }, "tools[0].type", /functions/],
  [
    "a tool's wrong name behind a hosted one",
    responses,
    { model, input: "Hi", tools: [{ type: "web_search" }, { type: "function", name: "a b" }] },
    "tools[1].name",
    /no tool name/,
  ],
  [
    "a tool without a name, flat",
    responses,
    { model, input: "Hi", tools: [{ type: "function" }] },
    "tools[0].name",
    /missing/,
  ],
  [
    "required among hosted tools",
    responses,
    { model, input: "Hi", tools: [{ type: "web_search" }], tool_choice: "required" },
    "tools",
    /needs tools/,
  ],
  [
    "no output tokens",
    responses,
    { model, input: "Hi", max_output_tokens: 0 },
    "max_output_tokens",
    /^max_output_tokens must/,
  ],
  ["a verbosity of text", responses, { model, input: "Hi", text: { verbosity: "low" } }, "text.verbosity", /length/],
  ["an unknown truncation", responses, { model, input: "Hi", truncation: "some" }, "truncation", /auto/],
  [
    "an earlier response that is none",
    responses,
    { model, input: "Hi", previous_response_id: "resp_nope" },
    "previous_response_id",
    /no response/,
  ],

  ["no prompt", completions, { model }, "prompt", /text/],
  ["two prompts", completions, { model, prompt: ["a", "b"] }, "prompt", /one request/],
  ["a prompt of tokens", completions, { model, prompt: [1, 2] }, "prompt", /text/],
  ["an echo", completions, { model, prompt: "a", echo: true }, "echo", /prompt/],
  ["the best of two", completions, { model, prompt: "a", best_of: 2 }, "best_of", /n/],
  ["a suffix on a model that can't", completions, { model: "t-tiny", prompt: "a", suffix: "b" }, "suffix", /fill in/],

  ["no text", embeddings, { model: "e-tiny" }, "input", /text/],
  ["an empty text", embeddings, { model: "e-tiny", input: "" }, "input", /empty/],
  ["an empty list", embeddings, { model: "e-tiny", input: [] }, "input", /empty/],
  ["an empty text in a list", embeddings, { model: "e-tiny", input: ["a", ""] }, "input[1]", /empty/],
  ["half a token", embeddings, { model: "e-tiny", input: [1.5] }, "input[0]", /int/],
  [
    "an unknown encoding",
    embeddings,
    { model: "e-tiny", input: "a", encoding_format: "hex" },
    "encoding_format",
    /float/,
  ],
  ["no dimensions", embeddings, { model: "e-tiny", input: "a", dimensions: 0 }, "dimensions", /dimensions must/],
  ["embeddings of a chat model", embeddings, { model, input: "a" }, "model", /can't make embeddings/],
];

it.each(rows)("%s is refused by name", async (_name, path, body, param, words) => {
  const { post, backend } = setUp();
  const answer = await post(path, body);
  const error = errorOf(answer);
  const isUnknownId = param === "previous_response_id" || param?.endsWith(".id") === true;
  expect(answer.status, answer.text).toBe(isUnknownId ? 404 : 400);
  expect(answer.headers).toMatchObject({ "x-should-retry": "false" });
  expect(answer.headers["content-type"]).toMatch(/^application\/json/);
  expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(error).toMatchObject({ type: "invalid_request_error", param });
  expect(error.message).toMatch(words);
  expect([...backend.requests, ...backend.embeddingRequests]).toHaveLength(0);
});

it.each([
  ["an unknown path", "GET", "/v1/nope", 404, "unknown_url", undefined],
  ["the root", "GET", "/v1", 404, "unknown_url", undefined],
  ["a wrong method", "GET", chat, 405, "method_not_allowed", "POST"],
  ["a wrong method on models", "POST", "/v1/models", 405, "method_not_allowed", "GET"],
  ["a wrong method on a response", "PATCH", "/v1/responses/resp_x", 405, "method_not_allowed", "GET, DELETE"],
  ["an unknown response", "GET", "/v1/responses/resp_x", 404, null, undefined],
  ["the input of an unknown response", "GET", "/v1/responses/resp_x/input_items", 404, null, undefined],
  ["an unknown response to cancel", "POST", "/v1/responses/resp_x/cancel", 404, null, undefined],
])("%s", async (_name, method, path, status, code, allow) => {
  const { request } = setUp();
  const answer = await request({ method, path });
  expect(answer.status).toBe(status);
  expect(errorOf(answer)).toMatchObject({ type: "invalid_request_error", code });
  expect(answer.headers["allow"]).toBe(allow);
});

it("a media type that is not JSON is refused", async () => {
  const { post } = setUp();
  const answer = await post(chat, { model, messages }, { "content-type": "text/plain" });
  expect(answer.status).toBe(415);
  expect(errorOf(answer).type).toBe("invalid_request_error");
});

it.each([
  ["x-lmsp-priority", "11"],
  ["x-lmsp-timeout-ms", "soon"],
  ["x-lmsp-on-disconnect", "wait"],
])("the header %s: %s is refused by name", async (name, value) => {
  const { post } = setUp();
  const answer = await post(chat, { model, messages }, { [name]: value });
  expect(answer.status).toBe(400);
  expect(errorOf(answer).param?.toLowerCase()).toBe(name);
});

it("a token that is unknown, where tokens are on", async () => {
  const sha256 = (text: string): string => text.padStart(64, "0");
  const tokens = [{ principal: "ann", sha256: sha256("right"), scopes: ["read"] as const }];
  const { get, post } = setUp({ tokens, sha256 });
  const wrong = await get("/v1/models", { authorization: "Bearer wrong" });
  expect(wrong.status).toBe(401);
  expect(errorOf(wrong).code).toBe("invalid_api_key");
  expect((await get("/v1/models", { authorization: "Bearer right" })).status).toBe(200);
  const lacking = await post(chat, { model, messages }, { authorization: "Bearer right" });
  expect(lacking.status).toBe(403);
  expect(errorOf(lacking)).toMatchObject({ type: "permission_error", code: "insufficient_scope" });
});

it("the table of errors does not change by accident", () => {
  const cells = Object.entries(errorTable).map(([code, row]) => `${code}: ${row.status} ${row.type} ${row.code}`);
  expect(cells).toMatchInlineSnapshot(`
    [
      "invalid-json: 400 invalid_request_error null",
      "invalid-request: 400 invalid_request_error null",
      "unsupported-operation: 404 invalid_request_error unknown_url",
      "not-found: 404 invalid_request_error null",
      "method-not-allowed: 405 invalid_request_error method_not_allowed",
      "unsupported-media-type: 415 invalid_request_error unsupported_media_type",
      "unauthorized: 401 invalid_request_error invalid_api_key",
      "forbidden: 403 permission_error insufficient_scope",
      "host-refused: 403 permission_error host_refused",
      "model-not-found: 404 invalid_request_error model_not_found",
      "unsupported-capability: 400 invalid_request_error unsupported_value",
      "context-length-exceeded: 400 invalid_request_error context_length_exceeded",
      "request-too-large: 413 invalid_request_error request_too_large",
      "invalid-output: 502 server_error invalid_output",
      "idempotency-in-progress: 409 idempotency_error idempotency_in_progress",
      "idempotency-mismatch: 422 idempotency_error idempotency_mismatch",
      "conflict: 409 invalid_request_error conflict",
      "rate-limited: 429 rate_limit_error rate_limit_exceeded",
      "quota-exceeded: 429 rate_limit_error insufficient_quota",
      "overloaded: 503 server_error overloaded",
      "draining: 503 server_error overloaded",
      "model-loading: 503 server_error model_loading",
      "insufficient-memory: 503 server_error insufficient_resources",
      "insufficient-storage: 503 server_error insufficient_resources",
      "deadline-exceeded: 504 server_error timeout",
      "cancelled: 499 server_error cancelled",
      "superseded: 499 server_error cancelled",
      "backend-unavailable: 503 server_error backend_unavailable",
      "backend-refused: backend invalid_request_error null",
      "backend-error: 502 server_error backend_error",
      "interrupted: 503 server_error interrupted",
      "events-expired: 410 invalid_request_error events_expired",
      "internal: 500 server_error internal_error",
    ]
  `);
});
