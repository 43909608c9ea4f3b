import { beforeEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { EventWriter } from "../server/event-writer.ts";
import { adaptChunks } from "../testing/adapt-chunks.ts";
import { recordedStream, streamNames } from "../testing/fixtures.ts";
import { dataOf, renderSse } from "../testing/render-sse.ts";
import { assembleChat, toSse } from "../testing/sdk.ts";
import { ChatSse } from "./chat-sse.ts";
import type { SseRequest } from "./sse.ts";

const request: SseRequest = { requestId: "req_1", model: "m", created: 7, includeUsage: false };

function render(partials: readonly string[], terminal: string, parts: Partial<SseRequest> = {}): string {
  return renderSse(new ChatSse({ ...request, ...parts }), partials, terminal);
}

describe.each(streamNames)("the recorded stream %s", (name) => {
  const recorded = recordedStream(name);
  const includeUsage = name === "chat-usage";
  let body: JsonObject;

  beforeEach(async () => {
    body = await assembleChat(toSse(recorded.chunks));
  });

  function adapted(openaiChunk: boolean) {
    const writer = new EventWriter({ policy: { openaiChunk }, requestId: "req_1" });
    const { partials, terminal } = adaptChunks(writer, recorded.chunks, body);
    return { partials: [...partials, ...terminal.partials], terminal: terminal.event };
  }

  it("comes out as it went in, where events carry its chunks", () => {
    const { partials, terminal } = adapted(true);
    expect(render(partials, terminal, { includeUsage })).toBe(toSse(recorded.chunks));
  });

  it("is rebuilt to the same answer, where they don't", async () => {
    const { partials, terminal } = adapted(false);
    const sse = render(partials, terminal, { includeUsage, model: recorded.request.model });
    expect(sse.endsWith("data: [DONE]\n\n")).toBe(true);
    const rebuilt = await assembleChat(sse);
    const essence = (answer: JsonObject) =>
      (answer["choices"] as { index: number; message: JsonObject; finish_reason: string }[]).map((choice) => ({
        index: choice.index,
        content: choice.message["content"] ?? "",
        calls: choice.message["tool_calls"] ?? [],
        finish: choice.finish_reason,
      }));
    expect(essence(rebuilt)).toEqual(essence(body));
    expect(rebuilt["model"]).toBe(body["model"]);
    expect(rebuilt["usage"]).toEqual(body["usage"]);
  });

  it("gets what its chunks lacked from the final body", () => {
    const { partials, terminal } = adapted(true);
    const withoutBare = partials.filter((text) => !text.includes("response.openai_chunk"));
    const chunks = dataOf(render(withoutBare, terminal, { includeUsage }));
    const finishes = chunks.flatMap((chunk) =>
      (chunk["choices"] as JsonObject[]).filter((choice) => choice["finish_reason"] !== null),
    );
    expect(finishes.map((choice) => choice["finish_reason"])).toEqual(
      (body["choices"] as JsonObject[]).map((choice) => choice["finish_reason"]),
    );
    expect(new Set(chunks.map((chunk) => chunk["id"])).size).toBe(1);
  });
});

describe("usage", () => {
  const done = JSON.stringify({
    type: "response.completed",
    body: { choices: [{ index: 0, message: { content: "x" }, finish_reason: "stop" }] },
  });
  const usage = JSON.stringify({
    type: "response.usage",
    usage: { input_tokens: 4, output_tokens: 3, total_tokens: 7 },
  });

  it("has a chunk of its own when it was asked for, in the words of chats", () => {
    const chunks = dataOf(render([usage], done, { includeUsage: true }));
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 },
    });
    expect(chunks.slice(0, -1).every((chunk) => chunk["usage"] === null)).toBe(true);
  });

  it("has none otherwise, also when the service sends one", () => {
    const exact = JSON.stringify({ ...JSON.parse(usage), openai_chunk: { id: "c", choices: [], usage: {} } });
    const first = JSON.stringify({ type: "response.openai_chunk", openai_chunk: { id: "c", choices: [] } });
    for (const texts of [[usage], [first, exact]]) {
      for (const chunk of dataOf(render(texts, done))) expect(chunk).not.toHaveProperty("usage");
    }
  });
});

it("gives out once a chunk that became several events, and twice one that came twice", () => {
  const writer = new EventWriter({ policy: { openaiChunk: true }, requestId: "req_1" });
  const called = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
  const chunk = (delta: object) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] });
  const chunks = [chunk({ content: "x" }), chunk({ content: "x" }), chunk({ tool_calls: [called] })];
  const { partials, terminal } = adaptChunks(writer, chunks, {});
  const sse = render([...partials, ...terminal.partials], terminal.event);
  expect(partials).toHaveLength(4);
  expect(dataOf(sse).slice(0, -1)).toEqual(chunks);
});

it("gives a whole answer as a stream when nothing was streamed", async () => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
  const message = { role: "assistant", content: "Hi", tool_calls: [call] };
  const body = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
  const answer = await assembleChat(render([], JSON.stringify({ type: "response.completed", body })));
  expect(answer["choices"]).toMatchObject([{ message, finish_reason: "tool_calls" }]);
});

it("finishes a stream whose service ends without a body", async () => {
  const text = JSON.stringify({ type: "response.output_text.delta", index: 0, delta: "Hi" });
  const answer = await assembleChat(render([text], '{"type":"response.completed","body":{}}'));
  expect(answer["choices"]).toMatchObject([{ message: { content: "Hi" }, finish_reason: "stop" }]);
});

it("tells an error in the stream and does not end it as if it were whole", () => {
  const error = { type: "server_error", code: "backend_error", message: "It failed." };
  const sse = render([], JSON.stringify({ type: "response.error", error }));
  expect(dataOf(sse)).toEqual([{ error: { ...error, param: null } }]);
  expect(sse).not.toContain("[DONE]");
});
