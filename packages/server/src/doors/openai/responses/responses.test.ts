import { CoreError } from "@plenum/core";
import { ManualClock } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { ResponsesStream } from "../../shared/openai/responses/stream.ts";
import { toWireError } from "../errors.ts";
import { answerOf, everything, hello, nothing, refusal } from "../testing/answers.ts";
import { readEvents } from "../testing/read-events.ts";
import { errorOf, fixedIds, setUp } from "../testing/set-up.ts";

const path = "/v1/responses";
const body = { model: "m-tiny", input: "Hi" };
const x = `${"0".repeat(23)}1`;

function fixed() {
  return setUp({ clock: new ManualClock(), ids: fixedIds() });
}

const object = {
  id: `resp_${x}`,
  object: "response",
  created_at: 1700000000,
  background: false,
  completed_at: null,
  error: null,
  incomplete_details: null,
  model: "m-tiny",
  previous_response_id: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: true,
  temperature: null,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: "disabled",
  user: null,
  metadata: {},
};

const message = {
  id: `msg_${x}_0`,
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }],
};

const usage = {
  input_tokens: 4,
  input_tokens_details: { cached_tokens: 1 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 6,
};

const completed = { ...object, status: "completed", completed_at: 1700000000, output: [message], usage };

describe("streamed Responses", () => {
  it("has every event in order, with its numbers and places (RSP-01)", async () => {
    const { backend, post } = fixed();
    backend.answer = hello;
    const answer = await post(path, { ...body, stream: true });
    const events = readEvents(answer.text);
    const begun = { ...object, status: "in_progress", output: [], usage: null };
    const place = { item_id: message.id, output_index: 0, content_index: 0 };
    const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
    const expected = [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { ...message, status: "in_progress", content: [] },
      },
      { type: "response.content_part.added", ...place, part: part("") },
      { type: "response.output_text.delta", ...place, delta: "Hel", logprobs: [] },
      { type: "response.output_text.delta", ...place, delta: "lo", logprobs: [] },
      { type: "response.output_text.done", ...place, text: "Hello", logprobs: [] },
      { type: "response.content_part.done", ...place, part: part("Hello") },
      { type: "response.output_item.done", output_index: 0, item: message },
      { type: "response.completed", response: completed },
    ];
    expect(events.map(({ json }) => json)).toEqual(
      expected.map((event, index) => ({ sequence_number: index, ...event })),
    );
    for (const { name, json } of events) expect(name).toBe(json.type);
    expect(answer.text).not.toContain("[DONE]");
  });

  it("shows reasoning, log probabilities and interleaved calls", async () => {
    const { backend, post } = fixed();
    backend.answer = everything;
    const answer = await post(path, { ...body, stream: true, include: ["message.output_text.logprobs"] });
    const events = readEvents(answer.text).map(({ json }) => json);
    const shown = events.slice(2, -1).map((event) => {
      const place = event.output_index ?? "";
      return `${event.type.slice("response.".length)} ${place} ${event.delta ?? event.arguments ?? ""}`.trim();
    });
    expect(shown).toEqual([
      "output_item.added 0",
      "content_part.added 0",
      "reasoning_text.delta 0 Hm",
      "reasoning_text.done 0",
      "content_part.done 0",
      "output_item.done 0",
      "output_item.added 1",
      "content_part.added 1",
      "output_text.delta 1 A",
      "output_text.done 1",
      "content_part.done 1",
      "output_item.done 1",
      "output_item.added 2",
      'function_call_arguments.delta 2 {"a":',
      "output_item.added 3",
      "function_call_arguments.delta 3 {}",
      "function_call_arguments.delta 2 1}",
      'function_call_arguments.done 2 {"a":1}',
      "output_item.done 2",
      "function_call_arguments.done 3 {}",
      "output_item.done 3",
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
    const token = { token: "A\n", logprob: -0.5, bytes: [65, 10] };
    const logprobs = [{ ...token, top_logprobs: [token] }];
    expect(events.filter((event) => event.logprobs?.length).map((event) => event.logprobs)).toEqual([
      logprobs,
      logprobs,
    ]);
    expect(events.find((event) => event.type === "response.function_call_arguments.done")?.name).toBe("f");
    expect(events.at(-1).response.output).toMatchObject([
      { type: "reasoning", id: `rs_${x}_0`, content: [{ type: "reasoning_text", text: "Hm" }], summary: [] },
      { type: "message", content: [{ text: "A\n", logprobs }] },
      { type: "function_call", call_id: "call_a", name: "f", arguments: '{"a":1}', status: "completed" },
      { type: "function_call", call_id: "call_b", name: "g", arguments: "{}", status: "completed" },
    ]);
  });

  it.each([
    ["a refusal", refusal, { type: "refusal", refusal: "I won't." }],
    ["nothing", nothing, { type: "output_text", text: "", annotations: [], logprobs: [] }],
  ])("opens and closes the part of %s", async (_name, script, part) => {
    const { backend, post } = fixed();
    backend.answer = script;
    const events = readEvents((await post(path, { ...body, stream: true })).text).map(({ json }) => json);
    const types = events.map((event) => event.type);
    expect(types.filter((type) => type.includes("content_part"))).toEqual([
      "response.content_part.added",
      "response.content_part.done",
    ]);
    expect(events.at(-1).response.output[0].content).toEqual([part]);
  });

  it("tells how it ended: incomplete, failed, cancelled", async () => {
    const { backend, post } = fixed();
    backend.answer = answerOf(
      { type: "accepted" },
      { type: "text", candidate: 0, delta: "x" },
      { type: "finish", candidate: 0, finishReason: "length" },
    );
    const cut = readEvents((await post(path, { ...body, stream: true })).text).at(-1)?.json;
    expect(cut).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, error: null },
    });
    for (const code of ["backend-error", "context-length-exceeded", "cancelled"] as const) {
      backend.answer = async function* () {
        yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
        await new Promise((resolve) => setTimeout(resolve, 10));
        throw new CoreError(code, "Why it ended.");
      };
      const last = readEvents((await post(path, { ...body, stream: true })).text).at(-1)?.json;
      if (code === "cancelled") {
        const error = { message: "Why it ended.", type: "server_error", param: null, code: "cancelled" };
        expect(last).toMatchObject({ type: "error", code: "cancelled", message: "Why it ended.", param: null, error });
      } else {
        const shown = code === "backend-error" ? "server_error" : "context_length_exceeded";
        expect(last).toMatchObject({
          type: "response.failed",
          response: { status: "failed", error: { code: shown, message: "Why it ended." } },
        });
      }
    }
  });

  it("makes the same events of the same log, however often", async () => {
    const { backend, core, post } = fixed();
    backend.answer = everything;
    const answer = await post(path, { ...body, stream: true });
    const owner = { id: "local", scopes: new Set(["read"] as const) };
    const { request } = await core.responses.get(`resp_${x}`, owner);
    const entries = (await core.responses.events(`resp_${x}`, 0, owner))?.take() ?? [];
    const source = new ResponsesStream({ request, toWireError, param: (name) => name });
    const again = entries.flatMap((entry) => source.push(entry));
    expect(again.map(({ name, json }) => `event: ${name}\ndata: ${json}\n\n`).join("")).toBe(answer.text);
  });
});

describe("whole Responses", () => {
  it("is this body, and is read back as it was", async () => {
    const { backend, get, post } = fixed();
    backend.answer = hello;
    const answer = await post(path, body);
    expect(answer.headers["x-lmsp-response-id"]).toBe(`resp_${x}`);
    expect(JSON.parse(answer.text)).toEqual(completed);
    const read = await get(`${path}/resp_${x}`);
    expect(read.status).toBe(200);
    expect(JSON.parse(read.text)).toEqual(completed);
    expect((await get(`${path}/resp_${x}?stream=true`)).status).toBe(400);
  });

  it("repeats what was asked", async () => {
    const { post } = fixed();
    const tool = { type: "function", name: "f", description: "d", parameters: { type: "object" }, strict: true };
    const format = { type: "json_schema", name: "a", schema: { type: "object" }, strict: true };
    const answer = await post(path, {
      ...body,
      instructions: "Be brief.",
      max_output_tokens: 9,
      metadata: { a: "1" },
      parallel_tool_calls: false,
      reasoning: { effort: "low" },
      store: false,
      temperature: 0,
      text: { format },
      tool_choice: { type: "function", name: "f" },
      tools: [tool],
      top_logprobs: 2,
      top_p: 0.5,
      truncation: "auto",
    });
    expect(JSON.parse(answer.text)).toMatchObject({
      instructions: "Be brief.",
      max_output_tokens: 9,
      metadata: { a: "1" },
      parallel_tool_calls: false,
      reasoning: { effort: "low" },
      store: false,
      temperature: 0,
      text: { format },
      tool_choice: { type: "function", name: "f" },
      tools: [tool],
      top_logprobs: 2,
      top_p: 0.5,
      truncation: "auto",
    });
  });

  it("hides another owner's response as if it were none (RSP-06)", async () => {
    const sha256 = (text: string): string => text.padStart(64, "0");
    const scopes = ["read", "infer"] as const;
    const tokens = ["ann", "bob"].map((principal) => ({ principal, sha256: sha256(principal), scopes }));
    const { backend, get, post } = setUp({ tokens, sha256 });
    const as = (name: string) => ({ authorization: `Bearer ${name}` });
    const { id } = JSON.parse((await post(path, body, as("ann"))).text);
    const unknown = await post(path, { ...body, previous_response_id: "resp_nope" }, as("bob"));
    const foreign = await post(path, { ...body, previous_response_id: id }, as("bob"));
    for (const answer of [unknown, foreign]) {
      expect(answer.status).toBe(404);
      expect(errorOf(answer).param).toBe("previous_response_id");
    }
    expect(foreign.text).toBe(unknown.text.replace("resp_nope", id));
    expect(backend.requests).toHaveLength(1);
    expect((await get(`${path}/${id}`, as("bob"))).status).toBe(404);
    expect(errorOf(await get(`${path}/${id}`, as("bob"))).param).toBe("response_id");
  });
});

describe("what real clients send", () => {
  it("a coding agent's turn", async () => {
    const { backend, post } = setUp();
    const parameters = { type: "object", properties: { cmd: { type: "string" } } };
    const exec = { type: "function", name: "exec_command", description: "run", strict: false, parameters };
    const answer = await post(path, {
      model: "m-tiny",
      instructions: "You code.",
      input: [
        { type: "message", role: "developer", content: [{ type: "input_text", text: "Be brief." }] },
        { role: "user", content: [{ type: "input_text", text: "Go" }] },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "xxx" },
        { type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }], content: null },
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "I run it", annotations: [] }],
        },
        { type: "function_call", id: "fc_1", call_id: "c1", name: "exec_command", arguments: "", status: "completed" },
        { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "ok" }] },
      ],
      tools: [exec, { type: "namespace", name: "agents", tools: [exec] }, { type: "web_search" }],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { summary: "auto" },
      store: false,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "k",
      client_metadata: { a: 1 },
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers["x-lmsp-without-effect"]).toBe(
      "prompt_cache_key, client_metadata, include.reasoning.encrypted_content, reasoning.summary, tools.namespace, tools.web_search",
    );
    const text = (value: string) => [{ type: "text", text: value }];
    expect(backend.requests[0]).toMatchObject({
      instructions: "You code.",
      store: false,
      tools: [{ name: "exec_command", description: "run", strict: false, parameters }],
      input: {
        kind: "items",
        items: [
          { type: "message", role: "developer", content: text("Be brief.") },
          { type: "message", role: "user", content: text("Go") },
          { type: "reasoning", text: "Hm" },
          { type: "message", role: "assistant", content: text("I run it") },
          { type: "function_call", callId: "c1", name: "exec_command", arguments: "{}" },
          { type: "function_call_output", callId: "c1", output: "ok" },
        ],
      },
    });
  });

  it("references to what it was answered, own ones only", async () => {
    const sha256 = (text: string): string => text.padStart(64, "0");
    const scopes = ["read", "infer"] as const;
    const tokens = ["ann", "bob"].map((principal) => ({ principal, sha256: sha256(principal), scopes }));
    const { backend, post } = setUp({ tokens, sha256 });
    const as = (name: string) => ({ authorization: `Bearer ${name}` });
    backend.answer = everything;
    const { output } = JSON.parse((await post(path, body, as("ann"))).text);
    const ids: string[] = output.map((item: { id: string }) => item.id);
    const input = [
      { role: "user", content: "Hi" },
      ...ids.map((itemId, index) => (index === 0 ? { id: itemId } : { type: "item_reference", id: itemId })),
      { type: "function_call_output", call_id: "call_a", output: "1" },
    ];
    const answer = await post(path, { ...body, input }, as("ann"));
    expect(answer.status, answer.text).toBe(200);
    expect(backend.requests[1]?.input).toEqual({
      kind: "items",
      items: [
        { type: "message", role: "user", content: [{ type: "text", text: "Hi" }] },
        { type: "reasoning", text: "Hm" },
        { type: "message", role: "assistant", content: [{ type: "text", text: "A\n" }] },
        { type: "function_call", callId: "call_a", name: "f", arguments: '{"a":1}' },
        { type: "function_call", callId: "call_b", name: "g", arguments: "{}" },
        { type: "function_call_output", callId: "call_a", output: "1" },
      ],
    });
    const foreign = await post(path, { ...body, input }, as("bob"));
    expect(foreign.status).toBe(404);
    expect(errorOf(foreign).param).toBe("input[1].id");
  });

  it("null for everything that may be absent", async () => {
    const { backend, post } = setUp();
    const nulls = Object.fromEntries(
      ["include", "instructions", "max_output_tokens", "metadata", "previous_response_id", "user"].map((name) => [
        name,
        null,
      ]),
    );
    const answer = await post(path, { ...body, ...nulls, tools: [], truncation: "disabled", top_p: 1, store: false });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers["x-lmsp-without-effect"]).toBeUndefined();
    expect(backend.requests[0]).toMatchObject({ tools: [], metadata: {}, truncation: "none" });
  });

  it("effort for a model that can't reason: without effect, and said so", async () => {
    const { post } = setUp();
    const answer = await post(path, { ...body, model: "t-tiny", reasoning: { effort: "low" } });
    expect(answer.headers["x-lmsp-without-effect"]).toBe("reasoning.effort");
  });

  it("max_output_tokens (REQ-04)", async () => {
    const { backend, post } = setUp();
    await post(path, { ...body, max_output_tokens: 16 });
    expect(backend.requests[0]?.output.maxTokens).toBe(16);
  });
});
