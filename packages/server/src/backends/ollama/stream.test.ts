import type { BackendEvent } from "@plenum/core";
import { CoreError } from "@plenum/core";
import { describe, expect, it } from "vitest";
import { AnswerReader } from "./stream.ts";
import { recorded } from "./testing/fake-ollama.ts";

interface Reading {
  readonly parallelToolCalls?: boolean;
}

function read(chunks: Iterable<Uint8Array>, reading: Reading = {}): BackendEvent[] {
  const events: BackendEvent[] = [];
  const reader = new AnswerReader({
    sink: (batch) => events.push(...batch),
    parallelToolCalls: true,
    onRefused: () => new Error("refused"),
    errorOf: (line) => new CoreError("backend-error", JSON.stringify(line)),
    ...reading,
  });
  try {
    expect(reader.onHead(200)).toBe(true);
    for (const chunk of chunks) reader.onData(chunk);
    reader.end();
  } catch (error) {
    throw Object.assign(error instanceof Error ? error : new Error(String(error)), { events });
  }
  return events;
}

const bytes = (...lines: readonly unknown[]) =>
  new TextEncoder().encode(lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));

function textOf(events: readonly BackendEvent[], type: "text" | "reasoning" = "text"): string {
  return events.map((event) => (event.type === type ? event.delta : "")).join("");
}

const done = { message: { role: "assistant", content: "" }, done: true, done_reason: "stop" };
const say = (content: string) => ({ message: { role: "assistant", content }, done: false });
const calls = (...all: object[]) => ({ message: { content: "", tool_calls: all.map((it) => ({ function: it })) } });

describe("recorded streams", () => {
  it("a chat", () => {
    const events = read([bytes(...recorded("chat-stream"))]);
    expect(events[0]).toEqual({ type: "accepted" });
    expect(textOf(events)).toBe("1. Red - The most popular colour among the 30 people surveyed,");
    expect(events.slice(-2)).toEqual([
      { type: "finish", candidate: 0, finishReason: "length", rawFinishReason: "length" },
      {
        type: "usage",
        usage: { inputTokens: 13, outputTokens: 16, cachedInputTokens: 0, reasoningTokens: 0 },
        loadMs: 33.341612,
        promptMs: 40.929603,
        generationMs: 254.700849,
      },
    ]);
  });

  it.each([
    ["chat-stream"],
    ["chat-think-supported-stream"],
    ["chat-tools-supported-call-stream"],
    ["generate-stream"],
    ["chat-logprobs-stream"],
  ])("%s, cut after every byte, reads the same", (name) => {
    const whole = bytes(...recorded(name), say("世界🌍"));
    const single = [...whole].map((byte) => Uint8Array.of(byte));
    expect(read(single)).toEqual(read([whole]));
  });

  it("thinking", () => {
    const events = read([bytes(...recorded("chat-think-supported-stream"))]);
    expect(textOf(events, "reasoning")).toBe("Hi, I'm here to help");
    expect(textOf(events)).toBe("");
  });

  it("a call, whole", () => {
    const events = read([bytes(...recorded("chat-tools-supported-call-stream"))]);
    expect(events.slice(1, 4)).toEqual([
      { type: "function_call", candidate: 0, call: 0, name: "get_weather" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"city":"Paris"}' },
      { type: "finish", candidate: 0, finishReason: "tool_calls", rawFinishReason: "stop" },
    ]);
  });

  it("log probabilities stand with their token", () => {
    const [, first] = read([bytes(...recorded("chat-logprobs-stream"))]);
    const the = { token: "The", logprob: -1.6985596418380737, bytes: [84, 104, 101] };
    expect(first).toEqual({ type: "text", candidate: 0, delta: "The", logprobs: [{ ...the, top: [the] }] });
  });

  it("a completion", () => {
    expect(textOf(read([bytes(...recorded("generate-stream"))]))).toMatch(/^1\. Red/);
  });
});

describe("what may come", () => {
  it("a character cut between two reads (SSE-05)", () => {
    const whole = bytes(say("世界🌍"), done);
    const at = whole.indexOf(0xf0) + 2;
    expect(textOf(read([whole.slice(0, at), whole.slice(at)]))).toBe("世界🌍");
  });

  it("a whole answer in one object without a line's end", () => {
    const one = { message: { role: "assistant", content: "ok" }, done: true, done_reason: "stop", eval_count: 1 };
    const events = read([new TextEncoder().encode(JSON.stringify(one))]);
    expect(events.map(({ type }) => type)).toEqual(["accepted", "text", "finish", "usage"]);
  });

  it.each([
    ["stop", "stop"],
    ["length", "length"],
    ["load", "stop"],
    ["something new", "stop"],
  ])("done_reason %s", (raw, finishReason) => {
    const finish = read([bytes({ ...done, done_reason: raw })]).find(({ type }) => type === "finish");
    expect(finish).toEqual({ type: "finish", candidate: 0, finishReason, rawFinishReason: raw });
  });

  it("a last line without reason and counts", () => {
    expect(read([bytes({ done: true })]).slice(1)).toEqual([
      { type: "finish", candidate: 0, finishReason: "stop" },
      { type: "usage", usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 } },
    ]);
  });

  it("big numbers in arguments keep their digits; arguments as text and none at all", () => {
    const line =
      '{"message":{"content":"","tool_calls":[{"function":{"name":"a","arguments":{"id":12345678901234567890,"x":1.0}}},{"function":{"name":"b","arguments":"{\\"c\\":1}"}},{"function":{"name":"d"}}]}}';
    const deltas = read([bytes(line, done)]).flatMap((event) =>
      event.type === "function_call_arguments" ? [event.delta] : [],
    );
    expect(deltas).toEqual(['{"id":12345678901234567890,"x":1.0}', '{"c":1}', "{}"]);
  });

  it("calls in several lines are numbered on; one alone where only one may be made", () => {
    const chunk = bytes(calls({ name: "a" }, { name: "b" }), calls({ name: "c" }), done);
    const names = (events: readonly BackendEvent[]) =>
      events.flatMap((event) => (event.type === "function_call" ? [`${event.call}${event.name}`] : []));
    expect(names(read([chunk]))).toEqual(["0a", "1b", "2c"]);
    expect(names(read([chunk], { parallelToolCalls: false }))).toEqual(["0a"]);
  });

  it("nothing after the last line counts", () => {
    expect(textOf(read([bytes(say("a"), done, say("b"), { error: "late" })]))).toBe("a");
  });
});

describe("faults: what was read is pushed, then the error", () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ["no last line", [say("a")], /ended before the answer was complete/],
    ["an error line", [say("a"), { error: "boom" }], /boom/],
    ["a line that is no JSON", [say("a"), "{nonsense"], /not JSON/],
    ["a line that is no object", [say("a"), "42"], /not a JSON object/],
  ])("%s", (_name, lines, expected) => {
    const failed = (): unknown => {
      try {
        return read([bytes(...lines)]);
      } catch (error) {
        return error;
      }
    };
    const error = failed();
    expect(error).toMatchObject({ code: "backend-error", message: expect.stringMatching(expected) });
    expect(error).toMatchObject({ events: [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }] });
  });
});
