/** What untidy servers send, beyond the cases: each fault's whole kind. */
import { afterEach, describe, expect, it } from "vitest";
import { jsonAnswer, type ReplayAnswer } from "../shared/testing/replay-upstream.ts";
import { chunk, routes, run, type Setup, setUp, sseAnswer } from "./testing/fixtures.ts";

let setup: Setup | undefined;
afterEach(async () => {
  await setup?.close();
  setup = undefined;
});

async function answerOf(answer: ReplayAnswer, changes: Parameters<typeof run>[1] = {}) {
  setup = await setUp(routes({ "/v1/chat/completions": () => answer }));
  return run(setup.backend, changes);
}

const done = "[DONE]";
const stop = chunk({}, "stop");
const call = (fields: object) => chunk({ tool_calls: [fields] });
const named = (name: string, text: unknown, more: object = {}) =>
  call({ ...more, function: { name, arguments: text } });

describe("tool calls", () => {
  const paris = '{"city":"Paris"}';
  const a = { name: "a", arguments: paris };
  const b = { name: "b", arguments: paris };
  it.each<[string, readonly (object | string)[], readonly object[]]>([
    [
      "the same index, other ids",
      [named("a", paris, { index: 0, id: "1" }), named("b", paris, { index: 0, id: "2" })],
      [
        { ...a, callId: "1" },
        { ...b, callId: "2" },
      ],
    ],
    [
      "the same index, empty ids",
      [named("a", paris, { index: 0, id: "" }), named("b", paris, { index: 0, id: "" })],
      [a, b],
    ],
    [
      "the same index and function twice, no ids",
      [named("a", paris, { index: 0 }), named("a", paris, { index: 0 })],
      [a, a],
    ],
    ["no index, no id, twice the same function", [named("a", paris), named("a", paris)], [a, a]],
    [
      "no index, pieces without id",
      [named("a", '{"city"', { id: "1" }), call({ function: { arguments: ':"Paris"}' } })],
      [{ ...a, callId: "1" }],
    ],
    [
      "no index, id on every piece",
      [named("a", '{"city"', { id: "1" }), call({ id: "1", function: { arguments: ':"Paris"}' } })],
      [{ ...a, callId: "1" }],
    ],
    ["name on every piece, no id", [named("a", '{"city"', { index: 0 }), named("a", ':"Paris"}', { index: 0 })], [a]],
    [
      "the same id for two calls",
      [named("a", paris, { index: 0, id: "1" }), named("b", paris, { index: 1, id: "1" })],
      [{ ...a, callId: "1" }, b],
    ],
    [
      "interleaved",
      [
        named("a", '{"city"', { index: 0, id: "1" }),
        named("b", '{"city"', { index: 1, id: "2" }),
        call({ index: 0, function: { arguments: ':"Paris"}' } }),
        call({ index: 1, function: { arguments: ':"Paris"}' } }),
      ],
      [
        { ...a, callId: "1" },
        { ...b, callId: "2" },
      ],
    ],
    [
      "indexes from 1, or as texts",
      [named("a", paris, { index: 1, id: "1" }), named("b", paris, { index: "2", id: "2" })],
      [
        { ...a, callId: "1" },
        { ...b, callId: "2" },
      ],
    ],
    ["the name after the id", [call({ index: 0, id: "1" }), named("a", paris, { index: 0 })], [{ ...a, callId: "1" }]],
    [
      "arguments null, then pieces",
      [named("a", null, { index: 0, id: "1" }), call({ index: 0, function: { arguments: paris } })],
      [{ ...a, callId: "1" }],
    ],
    ["arguments as an object", [named("a", { city: "Paris" }, { index: 0, id: "1" })], [{ ...a, callId: "1" }]],
    [
      "no arguments at all",
      [call({ index: 0, id: "1", function: { name: "a" } })],
      [{ name: "a", callId: "1", arguments: "" }],
    ],
    [
      "the old function_call",
      [
        chunk({ function_call: { name: "a", arguments: '{"city"' } }),
        chunk({ function_call: { arguments: ':"Paris"}' } }),
      ],
      [a],
    ],
    [
      "in a message in place of a delta",
      [{ choices: [{ message: { tool_calls: [{ id: "1", function: { name: "a", arguments: paris } }] } }] }],
      [{ ...a, callId: "1" }],
    ],
  ])("%s", async (_name, chunks, expected) => {
    const answer = await answerOf(sseAnswer([...chunks, stop, done]));
    expect(answer.error).toBeUndefined();
    expect(answer.calls).toEqual(expected);
    expect(answer.finishes).toEqual(["tool_calls"]);
  });

  it("keeps big numbers of an arguments object as they were written", async () => {
    const text = '{"id":12345678901234567890,"f":1.0,"s":"12345678901234567890"}';
    const raw = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":${text}}}]}}]}\n\ndata: ${JSON.stringify(stop)}\n\n`;
    expect((await answerOf({ writes: [{ text: raw }] })).calls[0]?.arguments).toBe(text);
  });

  it("drops calls behind the first when one at a time was asked for", async () => {
    const chunks = [named("a", paris, { index: 0, id: "1" }), named("b", paris, { index: 1, id: "2" }), stop, done];
    expect((await answerOf(sseAnswer(chunks), { parallelToolCalls: false })).calls).toHaveLength(1);
  });

  it("refuses a call without a name", async () => {
    const { error } = await answerOf(sseAnswer([call({ index: 0, function: { arguments: "{}" } }), stop, done]));
    expect(error).toMatchObject({ code: "backend-error" });
  });

  it.each([
    ["length", "length"],
    ["tool_calls", "tool_calls"],
    ["function_call", "tool_calls"],
    ["eos", "tool_calls"],
    ["content_filter", "content_filter"],
  ])("finish_reason %s behind a call is %s", async (raw, expected) => {
    const chunks = [named("a", paris, { index: 0, id: "1" }), chunk({}, raw), done];
    expect((await answerOf(sseAnswer(chunks))).finishes).toEqual([expected]);
  });
});

describe("text and thoughts", () => {
  it.each<[string, readonly object[], { text: string; reasoning: string }]>([
    [
      "tags cut over deltas",
      ["<th", "ink>\nhm", "m</thi", "nk>\n\nyes"].map((content) => chunk({ content })),
      { reasoning: "hmm", text: "yes" },
    ],
    [
      "tags at the end of a thought that never ended",
      ["<think>hm"].map((content) => chunk({ content })),
      { reasoning: "hm", text: "" },
    ],
    ["what only looks like a tag", ["<", "b>x"].map((content) => chunk({ content })), { reasoning: "", text: "<b>x" }],
    [
      "tags further on",
      ["a <think>b</think>"].map((content) => chunk({ content })),
      { reasoning: "", text: "a <think>b</think>" },
    ],
    ["thinking", [chunk({ thinking: "hm" }), chunk({ content: "yes" })], { reasoning: "hm", text: "yes" }],
    [
      "two names for the same",
      [chunk({ reasoning: "hm", reasoning_content: "hm" }), chunk({ content: "yes" })],
      { reasoning: "hm", text: "yes" },
    ],
    [
      "a list of parts",
      [
        chunk({
          content: [
            { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
            { type: "text", text: "yes" },
          ],
        }),
      ],
      { reasoning: "hm", text: "yes" },
    ],
    ["text and its end in one chunk", [chunk({ content: "yes" }, "stop")], { reasoning: "", text: "yes" }],
    [
      "content null",
      [chunk({ role: "assistant", content: null }), chunk({ content: "yes" })],
      { reasoning: "", text: "yes" },
    ],
  ])("%s", async (_name, chunks, expected) => {
    expect(await answerOf(sseAnswer([...chunks, stop, done]))).toMatchObject({ ...expected, finishes: ["stop"] });
  });

  it("a whole answer in place of a stream", async () => {
    const body = {
      choices: [{ index: 0, message: { content: "yes" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    };
    const answer = await answerOf({ contentType: "application/json", writes: [{ text: JSON.stringify(body) }] });
    expect(answer).toMatchObject({ text: "yes", finishes: ["stop"] });
    expect(answer.events.at(-1)).toMatchObject({ usage: { inputTokens: 3, outputTokens: 1 } });
  });

  it("keep-alives as data, empty finish reasons, chunks without choices, text behind the sentinel", async () => {
    const chunks = [
      "",
      "ping",
      ": keep-alive",
      { choices: [] },
      { id: "x" },
      chunk({ content: "a" }, ""),
      { error: null, choices: [] },
      chunk({ content: "b" }),
      stop,
      done,
      chunk({ content: "late" }),
    ];
    const answer = await answerOf(sseAnswer(chunks));
    expect(answer).toMatchObject({ text: "ab", finishes: ["stop"] });
    expect(answer.error).toBeUndefined();
  });

  it("the sentinel without a finish reason is an end", async () => {
    expect(await answerOf(sseAnswer([chunk({ content: "a" }), done]))).toMatchObject({ text: "a", finishes: ["stop"] });
  });

  it("usage that counts only one of several candidates is put right", async () => {
    const both = ["a", "b"].map((content, index) => ({
      choices: [{ index, delta: { content }, finish_reason: "stop" }],
    }));
    const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } };
    const answer = await answerOf(sseAnswer([...both, usage, done]), { candidates: 2 });
    expect(answer.events.at(-1)).toMatchObject({ usage: { inputTokens: 3, outputTokens: 2 } });
  });

  it("usage on every chunk counts once, the last; without any, deltas are counted", async () => {
    const usages = [1, 2].map((completion_tokens) => ({
      ...chunk({ content: "a" }),
      usage: { prompt_tokens: 7, completion_tokens },
    }));
    const counted = await answerOf(sseAnswer([...usages, stop, done]));
    expect(counted.events.filter(({ type }) => type === "usage")).toHaveLength(1);
    expect(counted.events.at(-1)).toMatchObject({ usage: { inputTokens: 7, outputTokens: 2 } });
    await setup?.close();
    const bare = await answerOf(
      sseAnswer([chunk({ content: "a" }), chunk({ content: "b" }), chunk({ content: "c" }), stop, done]),
    );
    expect(bare.events.at(-1)).toMatchObject({ usage: { outputTokens: 3 } });
  });
});

describe("ends", () => {
  const begun = [chunk({ content: "a" }), chunk({ content: "b" })];
  it.each<[string, ReplayAnswer, string]>([
    ["a clean end without a finish", sseAnswer(begun), "backend-error"],
    ["cut", sseAnswer(begun, "cut"), "backend-error"],
    ["reset", sseAnswer(begun, "reset"), "backend-error"],
    ["half a chunk", { writes: [{ text: 'data: {"choices":[{"delta":{"content":"a"' }] }, "backend-error"],
    ["nothing", { writes: [] }, "backend-error"],
    [
      "a web page",
      { contentType: "text/html", writes: [{ text: "<html><body>hello</body></html>" }] },
      "backend-error",
    ],
    ["garbage", { writes: [{ text: `data: ${"garbage ".repeat(20)}\n\n` }] }, "backend-error"],
    ["broken JSON", sseAnswer(["{nonsense}"]), "backend-error"],
    [
      "an event of 10 MB",
      { writes: [{ repeat_text: { prefix: "data: ", unit: "x".repeat(1_000), count: 10_000, suffix: "\n\n" } }] },
      "backend-error",
    ],
    ["an error behind output", sseAnswer([...begun, { error: { message: "slot lost", code: 500 } }]), "backend-error"],
    ["an error as a text", sseAnswer([{ error: "overheated" }]), "backend-error"],
    ["an error event", { writes: [{ text: 'event: error\ndata: {"message":"no","code":503}\n\n' }] }, "overloaded"],
    ["given up", sseAnswer([...begun, chunk({}, "abort"), done]), "backend-error"],
  ])("%s is an error", async (_name, answer, code) => {
    const { error, finishes } = await answerOf(answer);
    expect(error).toMatchObject({ code });
    expect(finishes).toEqual([]);
  });

  it.each<[string, ReplayAnswer]>([
    ["cut behind the finish", sseAnswer([...begun, stop], "cut")],
    ["reset behind the finish", sseAnswer([...begun, stop], "reset")],
    ["a connection left open behind the sentinel", sseAnswer([...begun, stop, done], "open")],
  ])("%s is whole", async (_name, answer) => {
    expect(await answerOf(answer)).toMatchObject({ text: "ab", finishes: ["stop"] });
  });
});

describe("calls that must be made, of a server that can't force them", () => {
  const tools = [{ name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } }];
  const noTemplate = { total_slots: 1, chat_template: "{{ messages }}", chat_template_caps: { supports_tools: false } };
  const written = '{"name":"get_weather","arguments":{"city":"Paris"}}';
  const said = sseAnswer([chunk({ content: written.slice(0, 9) }), chunk({ content: written.slice(9) }), stop, done]);

  it.each([
    ["llama-server", "a model without tools in its template", { "/props": () => jsonAnswer(noTemplate) }, "emulated"],
    ["lm-studio", "no call by name", {}, "emulated"],
    ["llama-server", "a model with tools in its template", {}, "honoured"],
    ["vllm", "forces them itself", {}, "honoured"],
  ])("%s, %s", async (kind, _title, pages, effect) => {
    setup = await setUp(routes({ ...pages, "/v1/chat/completions": () => said }), { kind });
    expect(setup.backend.models()[0]?.parameters).toMatchObject({ tool_choice: effect });
    for (const toolChoice of ["required", { name: "get_weather" }] as const) {
      const answer = await run(setup.backend, { tools, toolChoice });
      const body = setup.upstream.requests.at(-1)?.body;
      if (effect === "honoured") {
        expect(body).toMatchObject({ tools: [{}], tool_choice: expect.anything() });
        continue;
      }
      expect(body).not.toHaveProperty("tools");
      expect(body).not.toHaveProperty("tool_choice");
      expect(body).toMatchObject({
        messages: [{ role: "system", content: expect.stringContaining("get_weather") }, { role: "user" }],
        response_format: { json_schema: { schema: { properties: { name: { const: "get_weather" } } } } },
      });
      expect(answer).toMatchObject({
        text: "",
        calls: [{ name: "get_weather", arguments: '{"city":"Paris"}' }],
        finishes: ["tool_calls"],
      });
    }
  });

  it("leaves the choice to the model where it may choose", async () => {
    setup = await setUp(routes({ "/v1/chat/completions": () => said }), { kind: "lm-studio" });
    await run(setup.backend, { tools });
    expect(setup.upstream.requests.at(-1)?.body).toMatchObject({ tools: [{}] });
  });

  it("says so when the call was not made", async () => {
    const other = sseAnswer([chunk({ content: "It is sunny." }), stop, done]);
    setup = await setUp(routes({ "/v1/chat/completions": () => other }), { kind: "lm-studio" });
    expect((await run(setup.backend, { tools, toolChoice: "required" })).error).toMatchObject({
      code: "invalid-output",
    });
  });
});
