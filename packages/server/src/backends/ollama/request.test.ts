import type { BackendRequest, EmbeddingRequest, InputItem } from "@plenum/core";
import { describe, expect, it } from "vitest";
import { type RequestContext, toCall, toEmbedBody } from "./request.ts";
import { chat, user, weather } from "./testing/requests.ts";

function context(changes: { architecture?: string; can?: string[]; stop?: string[] } = {}): RequestContext {
  const { architecture = "llama", can = ["completion", "tools"], stop = [] } = changes;
  return { shown: { architecture, capabilities: new Set(can), stop } };
}

const base = { model: "m", stream: true, truncate: false, shift: false };
const messages = [{ role: "user", content: "Hi" }];

function items(...all: InputItem[]): Partial<BackendRequest> {
  return { input: { kind: "items", items: all } };
}

const call: InputItem = { type: "function_call", callId: "c1", name: "get_weather", arguments: '{"city":"Paris"}' };
const output: InputItem = { type: "function_call_output", callId: "c1", output: "18 C" };
const assistant = (text: string): InputItem => ({
  type: "message",
  role: "assistant",
  content: [{ type: "text", text }],
});
const image = (url: string): InputItem => ({
  type: "message",
  role: "user",
  content: [
    { type: "text", text: "What?" },
    { type: "image", url },
  ],
});
const calledWeather = { id: "c1", function: { name: "get_weather", arguments: { city: "Paris" } } };
const tool = { role: "tool", content: "18 C", tool_call_id: "c1", tool_name: "get_weather" };
const thinker = context({ can: ["completion", "thinking"] });
const oss = context({ can: ["completion", "thinking"], architecture: "gptoss" });

describe("/api/chat", () => {
  it.each<[string, Partial<BackendRequest>, object, RequestContext?]>([
    ["nothing but a message: no options, no num_ctx", {}, {}],
    ["maxTokens (REQ-04)", { output: { format: { type: "text" }, maxTokens: 5 } }, { options: { num_predict: 5 } }],
    [
      "sampling",
      {
        sampling: {
          temperature: 0,
          topP: 0.9,
          topK: 5,
          minP: 0.1,
          typicalP: 0.7,
          seed: 7,
          presencePenalty: 1,
          frequencyPenalty: -1,
          repeatPenalty: 1.1,
          repeatLastN: -1,
        },
      },
      {
        options: {
          temperature: 0,
          top_p: 0.9,
          top_k: 5,
          min_p: 0.1,
          typical_p: 0.7,
          seed: 7,
          presence_penalty: 1,
          frequency_penalty: -1,
          repeat_penalty: 1.1,
          repeat_last_n: -1,
        },
      },
    ],
    [
      "stop texts stand beside the model's own",
      { sampling: { stop: ["END"] } },
      { options: { stop: ["END", "<|im_end|>"] } },
      context({ stop: ["<|im_end|>"] }),
    ],
    [
      "runtimeOptions, under explicit fields",
      { runtimeOptions: { ollama: { num_ctx: 1024, seed: 1 }, vllm: { x: 1 } }, sampling: { seed: 2 } },
      { options: { num_ctx: 1024, seed: 2 } },
    ],
    [
      "the seed of a further answer",
      { sampling: { seed: 7 } },
      { options: { seed: 9 } },
      { ...context(), candidate: 2 },
    ],
    ["logprobs", { sampling: { logprobs: 3 } }, { logprobs: true, top_logprobs: 3 }],
    ["json", { output: { format: { type: "json" } } }, { format: "json" }],
    [
      "schema",
      { output: { format: { type: "json_schema", schema: { type: "array" }, strict: true } } },
      { format: { type: "array" } },
    ],
    ["truncation", { truncation: "oldest" }, { truncate: true }],
    ["keep alive", { keepAliveMs: 300_000 }, { keep_alive: "300000ms" }],
    ["keep alive for ever", { keepAliveMs: -1 }, { keep_alive: -1 }],
    ["keep alive not at all", { keepAliveMs: 0 }, { keep_alive: "0ms" }],
    ["keep alive of the backend", {}, { keep_alive: "1000ms" }, { ...context(), keepAliveMs: 1000 }],
    ["effort without the capability", { reasoning: { effort: "high" } }, {}],
    ["effort of a model that thinks or doesn't", { reasoning: { effort: "high" } }, { think: true }, thinker],
    ["no thinking", { reasoning: { effort: "none" } }, { think: false }, thinker],
    ["effort as a level", { reasoning: { effort: "high" } }, { think: "high" }, oss],
    ["effort below the levels", { reasoning: { effort: "minimal" } }, { think: "low" }, oss],
    [
      "tools",
      { tools: [weather, { name: "now" }] },
      {
        tools: [
          { type: "function", function: { ...weather } },
          {
            type: "function",
            function: { name: "now", description: "", parameters: { type: "object", properties: {} } },
          },
        ],
      },
    ],
    ["tools that must not be called", { tools: [weather], toolChoice: "none" }, {}],
    [
      "instructions and developer texts",
      {
        instructions: "Be brief.",
        ...items({ type: "message", role: "developer", content: [{ type: "text", text: "a" }] }, user("Hi")),
      },
      { messages: [{ role: "system", content: "Be brief." }, { role: "system", content: "a" }, ...messages] },
    ],
    [
      "several text parts",
      items({
        type: "message",
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      }),
      { messages: [{ role: "user", content: "a\nb" }] },
    ],
    [
      "calls without text: content is a text, arguments an object (REQ-01, TC-09)",
      items(user("Hi"), call, output),
      { messages: [...messages, { role: "assistant", content: "", tool_calls: [calledWeather] }, tool] },
    ],
    [
      "calls join the text before them",
      items(assistant("Let me see."), call, output),
      { messages: [{ role: "assistant", content: "Let me see.", tool_calls: [calledWeather] }, tool] },
    ],
    [
      "reasoning joins what comes after it",
      items({ type: "reasoning", text: "Hm." }, call, output, { type: "reasoning", text: "So." }, assistant("18")),
      {
        messages: [
          { role: "assistant", content: "", thinking: "Hm.", tool_calls: [calledWeather] },
          tool,
          { role: "assistant", content: "18", thinking: "So." },
        ],
      },
    ],
    [
      "an output without its call",
      items(user("Hi"), output),
      { messages: [...messages, { role: "tool", content: "18 C", tool_call_id: "c1" }] },
    ],
    [
      "images as bare base64",
      items(image("data:image/png;base64,aGk=")),
      { messages: [{ role: "user", content: "What?", images: ["aGk="] }] },
    ],
  ])("%s", (_name, changes, expected, where = context()) => {
    expect(toCall(chat(changes), where)).toEqual({ path: "/api/chat", body: { ...base, messages, ...expected } });
  });

  it.each<[string, Partial<BackendRequest>, string]>([
    ["logit_bias", { sampling: { logitBias: { "1": 1 } } }, "sampling.logit_bias"],
    ["a web image", items(image("https://example.com/a.png")), "input"],
    ["an image without base64", items(image("data:image/png,hi")), "input"],
    ["cut arguments", items({ type: "function_call", callId: "c", name: "n", arguments: '{"city":' }), "input"],
    [
      "arguments that are no object",
      items({ type: "function_call", callId: "c", name: "n", arguments: "[1]" }),
      "input",
    ],
    ["no message", items(), "input"],
    [
      "a schema that nothing fits",
      { output: { format: { type: "json_schema", schema: false, strict: true } } },
      "output.format",
    ],
    ["an empty completion", { input: { kind: "completion", prompt: "", raw: true } }, "input"],
    ["a completion with tools", { input: { kind: "completion", prompt: "a", raw: false }, tools: [weather] }, "tools"],
    [
      "a raw prompt with instructions",
      { input: { kind: "completion", prompt: "a", raw: true }, instructions: "b" },
      "instructions",
    ],
  ])("refuses by name: %s", (_name, changes, param) => {
    expect(() => toCall(chat(changes), context())).toThrow(
      expect.objectContaining({ code: "invalid-request", details: expect.objectContaining({ param }) }),
    );
  });
});

it.each<[string, Partial<BackendRequest>, object]>([
  ["raw", { input: { kind: "completion", prompt: "a", raw: true } }, { prompt: "a", raw: true }],
  [
    "with the template and a suffix",
    { input: { kind: "completion", prompt: "a", suffix: "c", raw: false }, instructions: "s" },
    { prompt: "a", suffix: "c", raw: false, system: "s" },
  ],
  [
    "with a format",
    { input: { kind: "completion", prompt: "a", raw: false }, output: { format: { type: "json" }, maxTokens: 2 } },
    { prompt: "a", raw: false, format: "json", options: { num_predict: 2 } },
  ],
])("/api/generate: %s", (_name, changes, expected) => {
  expect(toCall(chat(changes), context())).toEqual({ path: "/api/generate", body: { ...base, ...expected } });
});

describe("/api/embed", () => {
  const request: EmbeddingRequest = { model: "e", inputs: ["a"], truncate: false, priority: 0, runtimeOptions: {} };

  it("sends texts, length and keep alive", () => {
    const asked = { ...request, dimensions: 8, keepAliveMs: -1, runtimeOptions: { ollama: { num_ctx: 64 } } };
    const sent = { model: "e", input: ["a"], truncate: false, dimensions: 8, keep_alive: -1, options: { num_ctx: 64 } };
    expect(toEmbedBody(asked, context())).toEqual(sent);
    expect(toEmbedBody(request, context())).toEqual({ model: "e", input: ["a"], truncate: false });
  });

  it("refuses token ids by name", () => {
    expect(() => toEmbedBody({ ...request, inputs: [[1, 2]] }, context())).toThrow(/no token ids/);
  });
});
