/** The cases of __fixtures__/cases and the recorded streams of real servers, read by the backend. */
import { afterEach, describe, expect, it } from "vitest";
import type { ReplayAnswer } from "../shared/testing/replay-upstream.ts";
import { caseAnswers, recorded, requestOf, routes, run, type Setup, setUp } from "./testing/fixtures.ts";

let setup: Setup | undefined;
afterEach(async () => {
  await setup?.close();
  setup = undefined;
});

async function answerOf(answer: ReplayAnswer | undefined, changes: Parameters<typeof run>[1] = {}, kind?: string) {
  if (answer === undefined) throw new TypeError("the case has no upstream");
  setup = await setUp(
    routes({ "/v1/chat/completions": () => answer, "/v1/completions": () => answer }),
    kind === undefined ? {} : { kind },
  );
  return run(setup.backend, changes);
}

describe("cases", () => {
  it.each([
    ["SSE-01", "CRLF", { text: "AB", finishes: ["stop"] }],
    ["SSE-03", "keep-alive comments", { text: "ok", finishes: ["stop"] }],
    ["SSE-05", "a character cut between reads", { text: "世界🌍", finishes: ["stop"] }],
    ["SSE-07", "no sentinel", { text: "fin", finishes: ["stop"] }],
    ["SSE-09", "byte-order mark", { text: "first second", finishes: ["stop"] }],
    [
      "TC-01",
      "calls without index",
      {
        calls: [
          { name: "get_weather", callId: "c1", arguments: '{"city":"Paris"}' },
          { name: "get_time", callId: "c2", arguments: '{"zone":"UTC"}' },
        ],
        finishes: ["tool_calls"],
      },
    ],
    [
      "TC-03",
      "id and name on every delta",
      { calls: [{ name: "get_weather", callId: "c1", arguments: '{"city":"Paris"}' }], finishes: ["tool_calls"] },
    ],
    ["TC-05", "stop behind calls", { finishes: ["tool_calls"] }],
    ["RSN-01", "reasoning under another name", { reasoning: "Let me think", text: "42" }],
  ])("%s: %s", async (id, _title, expected) => {
    const answer = await answerOf(caseAnswers(id)[0]);
    expect(answer).toMatchObject(expected);
    expect(answer.error).toBeUndefined();
    expect(answer.events.at(-1)?.type).toBe("usage");
  });

  it("SSE-01: text is given before the upstream writes on", async () => {
    const [answer] = caseAnswers("SSE-01");
    if (answer === undefined) throw new TypeError("no upstream");
    setup = await setUp(routes({ "/v1/chat/completions": () => answer }));
    const times: number[] = [];
    await setup.backend.respond(
      requestOf(),
      (events) => {
        for (const event of events) if (event.type === "text") times.push(performance.now());
      },
      new AbortController().signal,
    );
    const [first = 0, second = 0] = times;
    expect(second - first).toBeGreaterThan(300);
  });

  it("ERR-01: an error in a stream before any output", async () => {
    const { error, text } = await answerOf(caseAnswers("ERR-01")[0]);
    expect(error).toMatchObject({ code: "context-length-exceeded" });
    expect(text).toBe("");
  });

  it.each([
    [0, "backend-refused", 422, /model busy/],
    [1, "backend-refused", 400, /bad/],
    [2, "backend-refused", 400, /bad/],
    [3, "backend-error", undefined, /^[^<]+$/],
    [4, "backend-error", undefined, /500/],
  ])("ERR-03: error body %i is %s", async (place, code, backendStatus, detail) => {
    const { error } = await answerOf(caseAnswers("ERR-03")[place]);
    expect(error).toMatchObject({ code, detail: expect.stringMatching(detail) });
    if (backendStatus !== undefined) expect(error).toMatchObject({ details: { backendStatus } });
  });

  it("USE-01: usage is always asked for and read", async () => {
    const { events } = await answerOf(caseAnswers("USE-01")[0]);
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 5, outputTokens: 1 } });
    expect(setup?.upstream.requests.at(-1)?.body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

describe("recorded streams", () => {
  it("llama-server: text, usage, timings", async () => {
    const answer = await answerOf(recorded("llama-server-0.6.0/chat-stream-usage"));
    expect(answer).toMatchObject({ text: "1. Red: The most", finishes: ["length"] });
    expect(answer.events.at(-1)).toMatchObject({
      usage: { inputTokens: 34, outputTokens: 6, cachedInputTokens: 33 },
      promptMs: 15.536,
    });
  });

  it("llama-server: calls in pieces", async () => {
    const { calls, error } = await answerOf(recorded("llama-server-0.6.0/tools-call-parallel-stream"));
    expect(error).toBeUndefined();
    expect(calls[0]).toMatchObject({ name: "get_weather", callId: "OhUCuuyCt42x39UrLT7lqA0Dv8VhHosb" });
  });

  it.each(["llama-server-0.6.0/chat-logprobs-stream", "vllm-0.32.0/chat-logprobs-stream"])(
    "%s: log probabilities",
    async (path) => {
      const { events } = await answerOf(recorded(path), { sampling: { logprobs: 1 } });
      const [first] = events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []));
      expect(first?.bytes.length).toBeGreaterThan(0);
      expect(first?.logprob).toBeLessThan(0);
      expect(first?.top).toHaveLength(1);
    },
  );

  it("llama-server: a completion", async () => {
    const input = { kind: "completion", prompt: "x", raw: true } as const;
    const answer = await answerOf(recorded("llama-server-0.6.0/v1-completions-stream"), { input });
    expect(answer).toMatchObject({ text: " Paris.\n\n", finishes: ["length"] });
    expect(setup?.upstream.requests.at(-1)).toMatchObject({ path: "/v1/completions", body: { prompt: "x" } });
  });

  it("vLLM: text and usage", async () => {
    const answer = await answerOf(recorded("vllm-0.32.0/chat-stream-usage"));
    expect(answer.text).toMatch(/^The capital of France is/);
    expect(answer.events.at(-1)).toMatchObject({ type: "usage", usage: { outputTokens: expect.any(Number) } });
  });

  it("vLLM: a strict call", async () => {
    const answer = await answerOf(recorded("vllm-0.32.0/chat-tools-strict-required-stream"));
    expect(answer.finishes).toEqual(["tool_calls"]);
    expect(answer.calls).toHaveLength(1);
    expect(JSON.parse(answer.calls[0]?.arguments ?? "")).toHaveProperty("city");
  });

  it("vLLM: two candidates", async () => {
    const answer = await answerOf(recorded("vllm-0.32.0/chat-n2-stream"), { candidates: 2 });
    expect(answer.finishes).toHaveLength(2);
    expect(answer.events.some((event) => event.type === "text" && event.candidate === 1)).toBe(true);
  });

  it.each([
    ["llama-server-0.6.0/chat-context-overflow-stream", "context-length-exceeded"],
    ["llama-server-0.6.0/key-wrong", "backend-error"],
    ["vllm-0.32.0/err-context-too-long", "context-length-exceeded"],
    ["vllm-0.32.0/err-unknown-model", "model-not-found"],
    ["vllm-0.32.0/err-max-tokens-over-context", "backend-refused"],
  ])("%s is %s", async (path, code) => {
    expect((await answerOf(recorded(path))).error).toMatchObject({ code });
  });
});
