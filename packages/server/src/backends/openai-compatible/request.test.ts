import type { BackendModel, InputItem } from "@plenum/core";
import { expect, it } from "vitest";
import { isWanted } from "../shared/openai/listed-model.ts";
import { dialectOf, dialects } from "./dialects.ts";
import { toBackendModel } from "./model-facts.ts";
import { settingsOf } from "./options.ts";
import { upstreamBody, withoutMaxTokens } from "./request.ts";
import { requestOf, userSays } from "./testing/fixtures.ts";

function modelOf(kind: string, contextTokens = 2048): BackendModel {
  const facts = { name: "m-tiny", aliases: [], capabilities: {}, toolsEmulated: false, isLoaded: true, details: {} };
  const settings = settingsOf({ id: "t", kind, baseUrl: "http://localhost" });
  return toBackendModel({ ...facts, contextTokens }, { state: "available" }, settings, dialectOf(kind), 0);
}

function bodyOf(
  changes: Parameters<typeof requestOf>[0],
  kind = "openai-compatible",
): Readonly<Record<string, unknown>> {
  return upstreamBody(requestOf(changes), modelOf(kind), kind, dialectOf(kind)).body;
}

const tool = { name: "f", parameters: { type: "object" } } as const;
const message = (role: "system" | "developer" | "user" | "assistant", text: string): InputItem => ({
  type: "message",
  role,
  content: [{ type: "text", text }],
});

it("asks for a stream with usage, text as a string, and nothing that was not asked for", () => {
  expect(bodyOf({})).toEqual({
    model: "m-tiny",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

it("makes one system message, first, of instructions, system and developer texts in order", () => {
  const items = [message("user", "a"), message("developer", "two"), message("system", "three"), message("user", "b")];
  expect(bodyOf({ instructions: "one", input: { kind: "items", items } })["messages"]).toEqual([
    { role: "system", content: "one\n\ntwo\n\nthree" },
    { role: "user", content: "a" },
    { role: "user", content: "b" },
  ]);
});

it("puts an assistant's text and calls into one message, with the arguments' own text", () => {
  const items: InputItem[] = [
    ...userSays("w?"),
    { type: "reasoning", text: "hm" },
    message("assistant", "let me see"),
    { type: "function_call", callId: "c1", name: "f", arguments: '{"id":12345678901234567890}' },
    { type: "function_call", callId: "c2", name: "f", arguments: "{}" },
    { type: "function_call_output", callId: "c1", output: "18 C" },
  ];
  const call = (id: string, text: string) => ({ id, type: "function", function: { name: "f", arguments: text } });
  const expected = [
    { role: "user", content: "w?" },
    {
      role: "assistant",
      content: "let me see",
      tool_calls: [call("c1", '{"id":12345678901234567890}'), call("c2", "{}")],
    },
    { role: "tool", tool_call_id: "c1", content: "18 C" },
  ];
  expect(bodyOf({ input: { kind: "items", items } })["messages"]).toEqual(expected);
  const [, assistant] = Object.values(Object(bodyOf({ input: { kind: "items", items } }, "vllm")["messages"]));
  expect(assistant).toMatchObject({ reasoning: "hm" });
});

it("sends images as parts", () => {
  const url = "data:image/png;base64,AA==";
  const items: InputItem[] = [
    {
      type: "message",
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "image", url, detail: "low" },
      ],
    },
  ];
  expect(bodyOf({ input: { kind: "items", items } })["messages"]).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "image_url", image_url: { url, detail: "low" } },
      ],
    },
  ]);
});

it.each([
  ["no tools", {}, {}],
  ["none", { tools: [tool], toolChoice: "none" } as const, {}],
  ["auto", { tools: [tool] }, { tools: [{ type: "function", function: tool }] }],
  ["required", { tools: [tool], toolChoice: "required" } as const, { tool_choice: "required" }],
  [
    "named",
    { tools: [tool], toolChoice: { name: "f" } },
    { tool_choice: { type: "function", function: { name: "f" } } },
  ],
  ["one at a time", { tools: [tool], parallelToolCalls: false }, { parallel_tool_calls: false }],
])("tools: %s", (_name, changes, expected) => {
  const body = bodyOf(changes);
  expect(body).toMatchObject(expected);
  if (!("tools" in expected) && !("tools" in changes && changes.tools.length > 0))
    expect(body).not.toHaveProperty("tools");
  if (changes !== undefined && "toolChoice" in changes && changes.toolChoice === "none")
    expect(body).not.toHaveProperty("tools");
});

it("vLLM's forced calls are strict, llama-server always hears of parallel calls", () => {
  const changes = { tools: [tool], toolChoice: "required" } as const;
  expect(bodyOf(changes, "vllm")).toMatchObject({ tools: [{ function: { strict: true } }] });
  expect(bodyOf(changes, "llama-server")).toMatchObject({ parallel_tool_calls: true });
});

it.each(Object.keys(dialects))("%s: every sampling field is in the body, or refused in the catalog", (kind) => {
  const sampling = {
    temperature: 0.5,
    topP: 0.9,
    topK: 5,
    minP: 0.1,
    typicalP: 0.9,
    seed: 7,
    stop: ["x"],
    presencePenalty: 1,
    frequencyPenalty: 1,
    repeatPenalty: 1.1,
    repeatLastN: 8,
    logitBias: { 5: 1 },
  };
  const { parameters } = modelOf(kind);
  const bare = Object.keys(bodyOf({}, kind)).length;
  for (const [name, value] of Object.entries(sampling)) {
    const parameter = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const sent = Object.keys(bodyOf({ sampling: { [name]: value } }, kind)).length > bare;
    expect([parameter, parameters[parameter]]).toEqual([parameter, sent ? "honoured" : "refused"]);
  }
});

it("wraps seeds that llama-server would read as none", () => {
  expect(bodyOf({ sampling: { seed: -1 } }, "llama-server")["seed"]).toBe(2 ** 32 - 2);
  expect(bodyOf({ sampling: { seed: -1 } })["seed"]).toBe(-1);
});

it.each([
  [{ type: "text" } as const, undefined],
  [{ type: "json" } as const, { type: "json_object" }],
  [
    { type: "json_schema", schema: { type: "object" }, strict: true, name: "n" } as const,
    { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: true } },
  ],
])("format %j", (format, expected) => {
  expect(bodyOf({ output: { format } })["response_format"]).toEqual(expected);
});

it("asks LM Studio for JSON by a schema", () => {
  expect(bodyOf({ output: { format: { type: "json" } } }, "lm-studio")["response_format"]).toMatchObject({
    type: "json_schema",
    json_schema: { schema: { type: "object" } },
  });
});

it("leaves out a bound that the context can't hold, and spells it by dialect", () => {
  const output = (maxTokens: number) => ({ output: { format: { type: "text" }, maxTokens } }) as const;
  expect(bodyOf(output(9))["max_tokens"]).toBe(9);
  expect(bodyOf(output(2048))).not.toHaveProperty("max_tokens");
  expect(bodyOf(output(9), "openai")).toMatchObject({ max_completion_tokens: 9 });
  const whole = { path: "/v1/completions", body: { max_tokens: 1, max_completion_tokens: 1, a: 1 } } as const;
  expect(withoutMaxTokens(whole).body).toEqual({ a: 1 });
});

it("sends candidates, priority, log probabilities, effort and the runtime's own options", () => {
  const runtimeOptions = { vllm: { ignore_eos: true, model: "other" }, ollama: { num_ctx: 1 } };
  expect(
    bodyOf(
      { candidates: 2, priority: 3, sampling: { logprobs: 0 }, reasoning: { effort: "none" }, runtimeOptions },
      "vllm",
    ),
  ).toMatchObject({
    n: 2,
    priority: -3,
    logprobs: true,
    top_logprobs: 0,
    chat_template_kwargs: { enable_thinking: false },
    ignore_eos: true,
    model: "m-tiny",
  });
  expect(bodyOf({ reasoning: { effort: "high" } })).toMatchObject({ reasoning_effort: "high" });
});

it("sends a raw prompt as a completion, another as a chat", () => {
  const raw = requestOf({ input: { kind: "completion", prompt: "a", raw: true }, sampling: { logprobs: 2 } });
  expect(upstreamBody(raw, modelOf("vllm"), "vllm", dialectOf("vllm"))).toMatchObject({
    path: "/v1/completions",
    body: { prompt: "a", logprobs: 2 },
  });
  expect(bodyOf({ input: { kind: "completion", prompt: "a", raw: false } })).toMatchObject({
    messages: [{ role: "user", content: "a" }],
  });
});

it.each([
  ["m", [], true],
  ["m", ["m"], true],
  ["m2", ["m"], false],
  ["org/m.q4", ["org/*"], true],
  ["orgxm", ["org.m"], false],
  ["a/b/c", ["*b*"], true],
])("%s among %j: %s", (name, patterns, expected) => expect(isWanted(name, patterns)).toBe(expected));
