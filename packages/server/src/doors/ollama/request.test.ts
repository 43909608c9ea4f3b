import type { ResponseRequest } from "@plenum/core";
import { expect, test } from "vitest";
import { defaults } from "./defaults.ts";
import { toChatRequest, toGenerateRequest } from "./request.ts";
import { chatSchema, generateSchema } from "./schema.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function chat(body: object): ReturnType<typeof toChatRequest> {
  return toChatRequest(chatSchema.parse({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body }), {});
}

function generate(body: object): ReturnType<typeof toGenerateRequest> {
  return toGenerateRequest(generateSchema.parse({ model: "m", prompt: "Hi", ...body }), {});
}

const user = { type: "message", role: "user", content: [{ type: "text", text: "Hi" }] };

test.each<[string, object, Partial<ResponseRequest>]>([
  ["an empty list of tools", { tools: [] }, { tools: [], toolChoice: "auto" }],
  ["null everywhere", { tools: null, options: null, format: null, think: null, keep_alive: null }, { sampling: {} }],
  [
    "options full of null",
    { options: { temperature: null, tfs_z: null, mirostat: null, stop: null } },
    { sampling: {} },
  ],
  ["format json", { format: "json" }, { output: { format: { type: "json" } } }],
  [
    "a schema as text",
    { format: '{"type":"object"}' },
    { output: { format: { type: "json_schema", schema: { type: "object" }, strict: true } } },
  ],
  ["think", { think: true }, { reasoning: { effort: "medium" } }],
  ["no think", { think: false }, { reasoning: { effort: "none" } }],
  ["a level of thinking", { think: "high" }, { reasoning: { effort: "high" } }],
  ["logprobs", { logprobs: true }, { sampling: { logprobs: 0 } }],
  ["top logprobs", { logprobs: true, top_logprobs: 2 }, { sampling: { logprobs: 2 } }],
  ["truncate", { truncate: true }, { truncation: "oldest" }],
  ["no truncate", { truncate: false }, { truncation: "none" }],
  ["a named tool", { tool_choice: { type: "function", function: { name: "f" } } }, { toolChoice: { name: "f" } }],
  ["a named tool, flat", { tool_choice: { type: "function", name: "f" } }, { toolChoice: { name: "f" } }],
  ["no limit: 0", { options: { num_predict: 0 } }, { output: { format: { type: "text" } } }],
  ["no limit: -1", { options: { num_predict: -1 } }, { output: { format: { type: "text" } } }],
  ["no limit: -2", { options: { num_predict: -2 } }, { output: { format: { type: "text" } } }],
  ["a random seed", { options: { seed: -1 } }, { sampling: {} }],
  ["all tokens", { options: { top_k: -1 } }, { sampling: { topK: 0 } }],
  [
    "every honoured option",
    {
      options: {
        temperature: 0.1,
        top_p: 0.2,
        top_k: 3.9,
        min_p: 0.4,
        typical_p: 0.5,
        seed: 6,
        stop: ["x"],
        presence_penalty: 0.7,
        frequency_penalty: 0.8,
        repeat_penalty: 1.1,
        repeat_last_n: -1,
        num_predict: 9,
      },
    },
    {
      output: { format: { type: "text" }, maxTokens: 9 },
      sampling: {
        temperature: 0.1,
        topP: 0.2,
        topK: 3,
        minP: 0.4,
        typicalP: 0.5,
        seed: 6,
        stop: ["x"],
        presencePenalty: 0.7,
        frequencyPenalty: 0.8,
        repeatPenalty: 1.1,
        repeatLastN: -1,
      },
    },
  ],
  ["nothing at all: Ollama's own sampling", {}, { sampling: {}, samplingDefaults: defaults.sampling }],
])("chat: %s", (_name, body, expected) => {
  expect(chat(body).request).toEqual(expect.objectContaining(expected));
  expect(chat(body).withoutEffect).toEqual([]);
});

test("chat: calls and answers find each other by id, by name, by order", () => {
  const call = (name: string, id?: string) => ({ ...(id ? { id } : {}), function: { name, arguments: { n: name } } });
  const { request } = chat({
    messages: [
      { role: "assistant", content: "", thinking: "Hm", tool_calls: [call("a", "x1"), call("b"), call("c")] },
      { role: "tool", tool_name: "c", content: "C" },
      { role: "tool", content: "A", tool_call_id: "x1" },
      { role: "tool", content: "B", tool_call_id: "unknown" },
      { role: "tool", name: "late", content: "L" },
    ],
  });
  const called = (callId: string, name: string) => ({
    type: "function_call",
    callId,
    name,
    arguments: `{"n":"${name}"}`,
  });
  expect(request.input).toEqual({
    kind: "items",
    items: [
      { type: "reasoning", text: "Hm" },
      called("x1", "a"),
      called("call_1", "b"),
      called("call_2", "c"),
      { type: "function_call_output", callId: "call_2", output: "C" },
      { type: "function_call_output", callId: "x1", output: "A" },
      { type: "function_call_output", callId: "call_1", output: "B" },
      { type: "function_call_output", callId: "call_3", output: "L" },
    ],
  });
});

test("chat: images become data URLs with their type", () => {
  const { request } = chat({ messages: [{ role: "user", content: "What?", images: [png, "/9j/AAAA"] }] });
  expect(request.input).toMatchObject({
    items: [
      {
        content: [
          { type: "image", url: `data:image/png;base64,${png}` },
          { type: "image", url: "data:image/jpeg;base64,/9j/AAAA" },
          { type: "text", text: "What?" },
        ],
      },
    ],
  });
});

test("generate: a prompt equals a chat of one turn", () => {
  const system = { type: "message", role: "system", content: [{ type: "text", text: "S" }] };
  expect(generate({ system: "S" }).request.input).toEqual({ kind: "items", items: [system, user] });
  expect(generate({}).request).toEqual(chat({}).request);
});

test("generate: raw and suffix are completions", () => {
  expect(generate({ raw: true }).request.input).toEqual({ kind: "completion", prompt: "Hi", raw: true });
  const filled = generate({ suffix: "end", system: "S" });
  expect(filled.request.input).toEqual({ kind: "completion", prompt: "Hi", suffix: "end", raw: false });
  expect(filled.withoutEffect).toEqual(["system"]);
});

test("what has no effect is named", () => {
  const { withoutEffect } = chat({
    options: { num_ctx: 4096, num_thread: 2, mirostat: 0, nonsense: 1 },
    shift: true,
    top_logprobs: 3,
  });
  expect(withoutEffect).toEqual(["options.num_ctx", "options.num_thread", "options.nonsense", "shift", "top_logprobs"]);
});
