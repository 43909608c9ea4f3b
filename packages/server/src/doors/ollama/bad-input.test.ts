import { createTestCore, ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { describe, expect, test } from "vitest";
import { beginCall, callDoor } from "../shared/testing/call-door.ts";
import { createOllamaDoor } from "./index.ts";

const base = scriptedModel("x").capabilities;

function setUp() {
  const backend = new ScriptedBackend("scripted", [
    scriptedModel("m"),
    scriptedModel("plain", { capabilities: { ...base, tools: false, structuredOutput: false, logprobs: false } }),
    scriptedModel("e", { capabilities: { ...base, chat: false, completion: false, embeddings: true } }),
  ]);
  return { backend, core: createTestCore({ backends: [backend] }) };
}

const messages = [{ role: "user", content: "Hi" }];
const tools = [{ type: "function", function: { name: "f" } }];
const chat = (body: object): [string, unknown] => ["/api/chat", { model: "m", messages, ...body }];
const generate = (body: object): [string, unknown] => ["/api/generate", { model: "m", prompt: "Hi", ...body }];
const one = (message: object): [string, unknown] => chat({ messages: [message] });

describe("bad input is refused in Ollama's format", () => {
  test.each<[string, [path: string, body: unknown], status: number, text: string | RegExp]>([
    ["no body", ["/api/chat", undefined], 400, "missing request body"],
    ["not JSON", ["/api/chat", "{"], 400, /not valid JSON/],
    ["a list", ["/api/chat", []], 400, /expected object/],
    ["no model", ["/api/chat", { messages }], 400, "model is required"],
    ["generate without a model", ["/api/generate", { prompt: "x" }], 404, "model '' not found"],
    ["show without a model", ["/api/show", {}], 400, "model is required"],
    ["a model that is a number", chat({ model: 5 }), 400, /'model' is wrong: expected string/],
    ["an unknown model", chat({ model: "x" }), 404, "model 'x' not found"],
    ["an unknown model to show", ["/api/show", { name: "x" }], 404, "model 'x' not found"],
    ["an unknown model to load", ["/api/generate", { model: "x" }], 404, "model 'x' not found"],
    [
      "an unknown model to embed",
      ["/api/embed", { model: "x", input: "a" }],
      404,
      'model "x" not found, try pulling it first',
    ],
    ["messages that are a text", chat({ messages: "hi" }), 400, /'messages' is wrong: expected array/],
    ["content that is a number", one({ role: "user", content: 5 }), 400, /'messages\[0\].content' is wrong/],
    ["content in parts", one({ role: "user", content: [] }), 400, /'messages\[0\].content' is wrong/],
    ["a role of its own", one({ role: "wizard", content: "x" }), 400, /'messages\[0\].role' is wrong/],
    ["images that are not base64", one({ role: "user", images: ["!!!"] }), 400, "illegal base64 data at input byte 0"],
    ["base64 cut short", one({ role: "user", images: ["iVBOR"] }), 400, "illegal base64 data at input byte 5"],
    ["images on a text model", one({ role: "user", images: ["/9j/"] }), 400, '"m" does not support images'],
    [
      "arguments as text",
      one({ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "{}" } }] }),
      400,
      /'messages\[0\].tool_calls\[0\].function.arguments' is wrong: expected object/,
    ],
    ["a tool's answer with images", one({ role: "tool", images: ["/9j/"] }), 400, /'messages\[0\].images' can't/],
    ["stream as text", chat({ stream: "no" }), 400, /'stream' is wrong: expected boolean/],
    ["chat on an embedding model", chat({ model: "e" }), 400, '"e" does not support chat'],
    ["generate on an embedding model", generate({ model: "e" }), 400, '"e" does not support generate'],
    ["raw on an embedding model", generate({ model: "e", raw: true }), 400, '"e" does not support generate'],
    ["embed on a chat model", ["/api/embed", { model: "m", input: "a" }], 400, '"m" does not support embeddings'],
    ["a suffix", generate({ suffix: "x" }), 400, '"m" does not support insert'],
    ["thinking", chat({ think: true }), 400, '"m" does not support thinking'],
    ["forced tools", chat({ model: "plain", tools, tool_choice: "required" }), 400, '"plain" does not support tools'],
    ["a format", chat({ model: "plain", format: "json" }), 400, '"plain" does not support format'],
    ["logprobs", chat({ model: "plain", logprobs: true }), 400, '"plain" does not support logprobs'],
    ["too many logprobs", chat({ logprobs: true, top_logprobs: 21 }), 400, /'top_logprobs' is wrong/],
    [
      "a bad think",
      chat({ think: "banana" }),
      400,
      'invalid think value: "banana" (must be "high", "medium", "low", true, or false)',
    ],
    [
      "a bad format",
      chat({ format: "xml" }),
      500,
      'invalid format: "\\"xml\\""; expected "json" or a valid JSON Schema object',
    ],
    ["a bad keep_alive", chat({ keep_alive: "banana" }), 400, 'time: invalid duration "banana"'],
    [
      "a float that is a text",
      chat({ options: { temperature: "hot" } }),
      500,
      /^option "temperature" must be of type float32$/,
    ],
    ["an integer that is a text", chat({ options: { num_ctx: "1" } }), 500, 'option "num_ctx" must be of type integer'],
    ["a flag that is a number", chat({ options: { use_mmap: 1 } }), 500, 'option "use_mmap" must be of type boolean'],
    ["stop as a text", chat({ options: { stop: "x" } }), 500, 'option "stop" must be of type array'],
    ["stop with a number", chat({ options: { stop: [1] } }), 500, 'option "stop" must be of an array of strings'],
    ["options that are a list", chat({ options: [] }), 400, /'options' is wrong/],
    ["mirostat", chat({ options: { mirostat: 2 } }), 400, /'options.mirostat' is not offered/],
    ["a temperature out of range", chat({ options: { temperature: 3 } }), 400, /temperature must be from 0 to 2/],
    ["a negative limit", chat({ options: { num_predict: -3 } }), 400, /'options.num_predict' must be/],
    ["a tool_choice of no tool", chat({ tools, tool_choice: { name: "g" } }), 400, /tool_choice names 'g'/],
    ["a tool without a function", chat({ tools: [{ type: "function" }] }), 400, /'tools\[0\].function' is wrong/],
    ["a template", generate({ template: "{{ .Prompt }}" }), 400, /'template' can't be set/],
    ["context", generate({ context: [1, 2] }), 400, /'context' can't continue/],
    [
      "raw with system",
      generate({ raw: true, system: "y" }),
      400,
      "raw mode does not support template, system, or context",
    ],
    ["token ids to embed", ["/api/embed", { model: "e", input: [1, 2] }], 400, "invalid input type"],
    ["an unknown path", ["/api/nope", {}], 404, "404 page not found"],
    ["a wrong method", ["/api/tags", {}], 405, "405 method not allowed"],
    ["a push", ["/api/push", { model: "x" }], 404, /\/api\/push is not offered by this service/],
    ["a pull of nothing", ["/api/pull", {}], 400, "invalid model name"],
    ["a pull of a URL", ["/api/pull", { model: "https://host/m.gguf" }], 400, "invalid model name"],
    ["a pull of a file", ["/api/pull", { model: "/etc/passwd" }], 400, "invalid model name"],
    ["a copy of nothing", ["/api/copy", { destination: "x" }], 400, 'source "" is invalid'],
    ["a copy without a name", ["/api/copy", { source: "m" }], 400, 'destination "" is invalid'],
    ["a copy of what is not there", ["/api/copy", { source: "x", destination: "y" }], 404, 'model "x" not found'],
  ])("%s", async (_name, [path, body], status, text) => {
    const { core, backend } = setUp();
    const answer = await callDoor(createOllamaDoor({ version: "1.2.3" }), core, { method: "POST", path, body });
    const isPlain = answer.headers["content-type"] === "text/plain";
    const error: unknown = isPlain ? answer.text : JSON.parse(answer.text).error;
    expect(answer.status, answer.text).toBe(status);
    expect(error).toEqual(typeof text === "string" ? text : expect.stringMatching(text));
    expect(backend.requests).toHaveLength(0);
  });
});

test("a full queue answers in Ollama's words", async () => {
  const backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 1 } })]);
  backend.answer = async function* (_request, signal) {
    yield [{ type: "accepted" }];
    await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  };
  const core = createTestCore({ backends: [backend], limits: { queued: 0 } });
  const first = beginCall(createOllamaDoor({ version: "1.2.3" }), core, {
    method: "POST",
    path: "/api/chat",
    body: chat({})[1],
  });
  await expect.poll(() => backend.running).toBe(1);
  const answer = await callDoor(createOllamaDoor({ version: "1.2.3" }), core, {
    method: "POST",
    path: "/api/chat",
    body: chat({})[1],
  });
  expect([answer.status, JSON.parse(answer.text).error, answer.headers["retry-after"]]).toEqual([
    503,
    "server busy, please try again.  maximum pending requests exceeded",
    "1",
  ]);
  first.responder.close();
  await first.done;
});
