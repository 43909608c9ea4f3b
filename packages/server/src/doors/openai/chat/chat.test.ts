import { ManualClock } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { beginCall } from "../../shared/testing/call-door.ts";
import { everything, hello, nothing, refusal, twoCandidates } from "../testing/answers.ts";
import { readEvents } from "../testing/read-events.ts";
import { door, errorOf, fixedIds, setUp } from "../testing/set-up.ts";

const path = "/v1/chat/completions";
const body = { model: "m-tiny", messages: [{ role: "user", content: "Hi" }] };
const id = `chatcmpl-${"0".repeat(23)}1`;
const head = `{"id":"${id}","object":"chat.completion.chunk","created":1700000000,"model":"m-tiny","choices":[`;
const choice = (delta: string, finish = "null", index = 0, logprobs = "null"): string =>
  `{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}`;
const role = '{"role":"assistant","content":"","refusal":null}';

function fixed() {
  return setUp({ clock: new ManualClock(), ids: fixedIds() });
}

describe("streamed chat", () => {
  it("is these bytes", async () => {
    const { backend, post } = fixed();
    backend.answer = hello;
    const answer = await post(path, { ...body, stream: true });
    expect(answer.headers).toEqual({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      "x-lmsp-response-id": `resp_${"0".repeat(23)}1`,
    });
    const chunks = [role, '{"content":"Hel"}', '{"content":"lo"}'].map((delta) => choice(delta));
    expect(answer.text).toBe(
      `${[...chunks, choice("{}", '"stop"')].map((chunk) => `data: ${head}${chunk}]}\n\n`).join("")}data: [DONE]\n\n`,
    );
  });

  it("shows usage only when asked, null before the last chunk (USE-01)", async () => {
    const { backend, post } = fixed();
    backend.answer = hello;
    const unasked = readEvents((await post(path, { ...body, stream: true })).text);
    for (const { json } of unasked.slice(0, -1)) {
      expect(json.choices).toHaveLength(1);
      expect(json).not.toHaveProperty("usage");
    }
    const asked = await post(path, { ...body, stream: true, stream_options: { include_usage: true } });
    const events = readEvents(asked.text);
    expect(events.at(-1)?.data).toBe("[DONE]");
    expect(events.at(-2)?.json).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 4,
        completion_tokens: 2,
        total_tokens: 6,
        prompt_tokens_details: { cached_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 1 },
      },
    });
    for (const { json } of events.slice(0, -2)) expect(json.usage).toBeNull();
  });

  it("numbers tool calls, names each once, and shows reasoning and log probabilities", async () => {
    const { backend, post } = fixed();
    backend.answer = everything;
    const answer = await post(path, { ...body, stream: true, logprobs: true, top_logprobs: 1 });
    const choices = readEvents(answer.text).flatMap(({ json }) => json?.choices ?? []);
    expect(choices.map((shown) => shown.delta)).toEqual([
      { role: "assistant", content: null, refusal: null },
      { reasoning_content: "Hm" },
      { content: "A\n" },
      { tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "f", arguments: "" } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] },
      { tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "g", arguments: "" } }] },
      { tool_calls: [{ index: 1, function: { arguments: "{}" } }] },
      { tool_calls: [{ index: 0, function: { arguments: "1}" } }] },
      {},
    ]);
    expect(choices.map((shown) => shown.finish_reason).filter((reason) => reason !== null)).toEqual(["tool_calls"]);
    const token = { token: "A\n", logprob: -0.5, bytes: [65, 10] };
    expect(choices[2].logprobs).toEqual({ content: [{ ...token, top_logprobs: [token] }], refusal: null });
  });

  it("keeps candidates apart", async () => {
    const { backend, post } = fixed();
    backend.answer = twoCandidates;
    const answer = await post(path, { ...body, n: 2, stream: true });
    const choices = readEvents(answer.text).flatMap(({ json }) => json?.choices ?? []);
    const of = (index: number) => choices.filter((shown) => shown.index === index);
    expect(of(0).map((shown) => shown.delta.content ?? shown.finish_reason)).toEqual(["", "a", "c", "length"]);
    expect(of(1).map((shown) => shown.delta.content ?? shown.finish_reason)).toEqual(["", "b", "stop"]);
  });

  it("ends with an error, never with `stop`, when it is cancelled", async () => {
    const { backend, core } = fixed();
    backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    };
    const { responder, done } = beginCall(door, core, { method: "POST", path, body: { ...body, stream: true } });
    await expect.poll(() => responder.text).toContain('"x"');
    await core.responses.cancel(id, { id: "local", scopes: new Set() });
    await done;
    expect(responder.text).not.toContain('"stop"');
    expect(responder.text).not.toContain("[DONE]");
    expect(readEvents(responder.text).at(-1)?.json).toEqual({
      error: { message: "It was cancelled on request.", type: "server_error", param: null, code: "cancelled" },
    });
  });

  it("sends its headers after ten seconds without output", async () => {
    const clock = new ManualClock();
    const { backend, core } = setUp({ clock });
    let go = (): void => {};
    backend.answer = async function* () {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      yield [{ type: "accepted" }, { type: "finish", candidate: 0, finishReason: "stop" }];
    };
    const { responder, done } = beginCall(door, core, { method: "POST", path, body: { ...body, stream: true } });
    await expect.poll(() => backend.running).toBe(1);
    clock.advance(9_999);
    expect(responder.hasStarted).toBe(false);
    clock.advance(1);
    expect(responder).toMatchObject({ hasStarted: true, status: 200 });
    clock.advance(5_000);
    expect(responder.text).toMatch(/^: .*\n\n$/);
    go();
    await done;
    expect(readEvents(responder.text).at(-1)?.data).toBe("[DONE]");
  });
});

describe("whole chat", () => {
  it("is this body", async () => {
    const { backend, post } = fixed();
    backend.answer = everything;
    const answer = await post(path, { ...body, logprobs: true });
    expect(answer.headers).toMatchObject({ "x-lmsp-response-id": `resp_${"0".repeat(23)}1` });
    const token = { token: "A\n", logprob: -0.5, bytes: [65, 10] };
    expect(JSON.parse(answer.text)).toEqual({
      id,
      object: "chat.completion",
      created: 1700000000,
      model: "m-tiny",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "A\n",
            refusal: null,
            reasoning_content: "Hm",
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: '{"a":1}' } },
              { id: "call_b", type: "function", function: { name: "g", arguments: "{}" } },
            ],
          },
          logprobs: { content: [{ ...token, top_logprobs: [token] }], refusal: null },
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 4,
        completion_tokens: 2,
        total_tokens: 6,
        prompt_tokens_details: { cached_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 1 },
      },
    });
  });

  it.each([
    ["a refusal", refusal, { content: null, refusal: "I won't." }],
    ["nothing", nothing, { content: "", refusal: null }],
  ])("shows %s", async (_name, script, message) => {
    const { backend, post } = fixed();
    backend.answer = script;
    const { choices } = JSON.parse((await post(path, body)).text);
    expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", ...message } });
  });

  it("has every candidate in order", async () => {
    const { backend, post } = fixed();
    backend.answer = twoCandidates;
    const { choices } = JSON.parse((await post(path, { ...body, n: 2 })).text);
    expect(choices).toMatchObject([
      { index: 0, finish_reason: "length", message: { content: "ac" } },
      { index: 1, finish_reason: "stop", message: { content: "b" } },
    ]);
  });
});

describe("what real clients send", () => {
  const weather = { type: "function", function: { name: "get_weather", parameters: { type: "object" } } };
  const call = { id: "c1", type: "function", function: { name: "get_weather", arguments: "{}" } };

  it.each([["null"], ["absent"], ["empty"]])(
    "an assistant's turn of calls with %s content (REQ-01)",
    async (content) => {
      const { backend, post } = setUp();
      const said = content === "absent" ? {} : { content: content === "null" ? null : "" };
      const messages = [
        { role: "user", content: "w?" },
        { role: "assistant", ...said, tool_calls: [call] },
        { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "18 C" }] },
      ];
      const answer = await post(path, { ...body, messages, tools: [weather] });
      expect(answer.status, answer.text).toBe(200);
      expect(backend.requests[0]?.input).toEqual({
        kind: "items",
        items: [
          { type: "message", role: "user", content: [{ type: "text", text: "w?" }] },
          { type: "function_call", callId: "c1", name: "get_weather", arguments: "{}" },
          { type: "function_call_output", callId: "c1", output: "18 C" },
        ],
      });
    },
  );

  it("a developer message, which stays one in the core (REQ-03)", async () => {
    const { backend, post } = setUp();
    const messages = [
      { role: "system", content: "A" },
      { role: "developer", content: "B" },
      { role: "user", content: "C" },
    ];
    expect((await post(path, { ...body, messages })).status).toBe(200);
    expect(backend.requests[0]?.input).toMatchObject({
      items: [{ role: "system" }, { role: "developer" }, { role: "user" }],
    });
  });

  it("both bounds of the answer: the newer one wins (REQ-04)", async () => {
    const { backend, post } = setUp();
    await post(path, { ...body, max_completion_tokens: 5 });
    await post(path, { ...body, max_completion_tokens: 5, max_tokens: 50 });
    await post(path, { ...body, max_tokens: 32_000 });
    expect(backend.requests.map(({ output }) => output.maxTokens)).toEqual([5, 5, 32_000]);
  });

  it("no tools with a choice among them (TC-10)", async () => {
    const { backend, post } = setUp();
    for (const choice of ["auto", "none"]) {
      expect((await post(path, { ...body, tools: [], tool_choice: choice })).status).toBe(200);
    }
    for (const { tools, toolChoice } of backend.requests)
      expect({ tools, toolChoice }).toEqual({ tools: [], toolChoice: "auto" });
    const required = await post(path, { ...body, tools: [], tool_choice: "required" });
    expect(required.status).toBe(400);
    expect(errorOf(required).param).toBe("tools");
  });

  it("tools for a model that can't call them: without effect, and said so", async () => {
    const { backend, post } = setUp();
    const answer = await post(path, { ...body, model: "t-tiny", tools: [weather] });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers["x-lmsp-without-effect"]).toBe("tools");
    expect(backend.requests[0]?.tools).toEqual([]);
  });

  it("what the model makes nothing of: without effect, and said so", async () => {
    const { post } = setUp();
    const answer = await post(path, { ...body, model: "t-tiny", reasoning_effort: "low", top_k: 3, top_p: 0.5 });
    expect(answer.headers["x-lmsp-without-effect"]).toBe("top_k, reasoning_effort");
  });

  it("names, options of a stream that is none, a schema's description: without effect, and said so", async () => {
    const { post } = setUp();
    const answer = await post(path, {
      model: "m-tiny",
      messages: [{ role: "user", name: "ann", content: "Hi" }],
      stream_options: { include_usage: true },
      response_format: { type: "json_schema", json_schema: { name: "a", description: "b", schema: {} } },
    });
    expect(answer.headers["x-lmsp-without-effect"]).toBe(
      "stream_options, response_format.json_schema.description, messages.name",
    );
  });

  it("images as data URLs, and reasoning of an earlier turn", async () => {
    const { backend, post } = setUp();
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text: "?" },
          { type: "image_url", image_url: { url, detail: "low" } },
        ],
      },
      { role: "assistant", content: "A dog", reasoning_content: "Hm" },
      { role: "user", content: "Sure?" },
    ];
    const answer = await post(path, { ...body, messages });
    expect(answer.status, answer.text).toBe(200);
    expect(backend.requests[0]?.input).toMatchObject({
      items: [
        {
          content: [
            { type: "text", text: "?" },
            { type: "image", url, detail: "low" },
          ],
        },
        { type: "reasoning", text: "Hm" },
        { role: "assistant" },
        { role: "user" },
      ],
    });
  });

  it("LMSP's headers", async () => {
    const clock = new ManualClock();
    const { backend, post } = setUp({ clock });
    await post(path, body, {
      "x-lmsp-priority": "3",
      "x-lmsp-timeout-ms": "2000",
      "x-lmsp-on-disconnect": "continue",
    });
    expect(backend.requests[0]).toMatchObject({
      priority: 3,
      deadlineMs: clock.now() + 2000,
      onDisconnect: "continue",
    });
  });
});
