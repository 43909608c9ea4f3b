import type { BackendEvent } from "@plenum/core";
import { afterEach, describe, expect, it } from "vitest";
import { adaptChunks } from "../../../../profile/src/testing/adapt-chunks.ts";
import { streamNames } from "../../../../profile/src/testing/fixtures.ts";
import { assembleChat, toSse } from "../../../../profile/src/testing/sdk.ts";
import { isLoose, listOf } from "../shared/openai/loose.ts";
import {
  models,
  recorded,
  recordedStream,
  requestOf,
  run,
  type Script,
  type Setup,
  scripts,
  setUp,
  textOf,
} from "./testing/fixtures.ts";

const setups: Setup[] = [];
afterEach(async () => {
  for (const setup of setups.splice(0)) await setup.close();
});

function backendOf(chat: Script, entry: object = { id: "m" }) {
  const setup = setUp(scripts({ "models.list": models(entry), "chat.completions.create": chat }));
  setups.push(setup);
  return setup.backend;
}

const without = (events: readonly BackendEvent[], ...types: readonly BackendEvent["type"][]) =>
  events.filter(({ type }) => !types.includes(type));

/** What matters of an answer: neighbouring pieces become one. */
function joined(events: readonly BackendEvent[]): readonly object[] {
  const all: Record<string, unknown>[] = [];
  for (const event of events) {
    const last = all.at(-1);
    const isSame = last !== undefined && "delta" in event && last["type"] === event.type;
    const isSamePlace = isSame && "candidate" in event && last["candidate"] === event.candidate;
    if (isSamePlace && "delta" in event) last["delta"] = `${last["delta"]}${event.delta}`;
    else all.push({ ...event });
  }
  return all;
}

describe.each(streamNames)("a recorded stream of a real server behind an adapter: %s", (name) => {
  const { request, chunks } = recordedStream(name);

  it.each([
    ["with its chunks", { id: "m" }],
    ["without", { id: "m", capabilities: { reasoning: false } }],
  ])("%s", async (how, entry) => {
    const body = await assembleChat(toSse(chunks));
    const seen: boolean[] = [];
    const backend = backendOf(async ({ envelope, writer, partial, end }) => {
      seen.push(envelope.policy.openaiChunk === true);
      const { partials, terminal } = adaptChunks(writer, chunks, { ...body, ...usageOf(chunks) });
      for (const each of partials) await partial(each);
      end(terminal);
    }, entry);
    const candidates = typeof request["n"] === "number" ? request["n"] : 1;
    const events = await run(backend, { candidates });
    expect(seen).toEqual([how === "with its chunks"]);
    for (const [index, choice] of listOf(body["choices"]).entries()) {
      const message = isLoose(choice) && isLoose(choice["message"]) ? choice["message"] : {};
      expect(textOf(events, index)).toBe(message["content"] ?? "");
      const calls = listOf(message["tool_calls"]).filter(isLoose);
      expect(callsOf(events, index)).toEqual(
        calls.map(({ id, function: called }) => ({ callId: id, ...(isLoose(called) ? called : {}) })),
      );
      const finish = events.find((event) => event.type === "finish" && event.candidate === index);
      expect(finish).toMatchObject({ rawFinishReason: isLoose(choice) ? choice["finish_reason"] : "" });
    }
    expect(events.at(0)).toEqual({ type: "accepted" });
    expect(events.at(-1)).toMatchObject({ type: "usage" });
  });
});

function usageOf(chunks: readonly object[]): object {
  const last = chunks.findLast((chunk) => "usage" in chunk && isLoose(chunk.usage));
  return last !== undefined && "usage" in last ? { usage: last.usage } : {};
}

function callsOf(events: readonly BackendEvent[], candidate: number): readonly object[] {
  const calls: { callId?: string; name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.type === "function_call" && event.candidate === candidate) {
      const callId = event.callId === undefined ? {} : { callId: event.callId };
      calls.push({ ...callId, name: event.name, arguments: "" });
    }
    const call =
      event.type === "function_call_arguments" && event.candidate === candidate ? calls[event.call] : undefined;
    if (call !== undefined && event.type === "function_call_arguments") call.arguments += event.delta;
  }
  return calls;
}

describe("recorded exchanges of the real peer", () => {
  it("streams text, with usage in the profile's own spelling", async () => {
    const events = await run(backendOf(recorded("chat-stream")));
    expect(joined(events)).toEqual([
      { type: "accepted" },
      { type: "text", candidate: 0, delta: "Hello, wörld ✓" },
      { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "stop" },
      { type: "usage", usage: { inputTokens: 4, outputTokens: 3, cachedInputTokens: 0, reasoningTokens: 0 } },
    ]);
  });

  it("streams a tool call", async () => {
    const events = await run(backendOf(recorded("chat-tools")));
    expect(joined(events)).toEqual([
      { type: "accepted" },
      { type: "function_call", candidate: 0, call: 0, name: "lookup", callId: "call_1" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"key":"value"}' },
      { type: "finish", candidate: 0, finishReason: "tool_calls", rawFinishReason: "tool_calls" },
      { type: "usage", usage: { inputTokens: 12, outputTokens: 8, cachedInputTokens: 0, reasoningTokens: 0 } },
    ]);
  });

  it("takes a whole answer", async () => {
    const events = await run(backendOf(recorded("chat")), { delivery: "whole" });
    expect(joined(events)).toEqual([
      { type: "accepted", isWhole: true },
      { type: "text", candidate: 0, delta: "Hello" },
      { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "stop" },
      { type: "usage", usage: { inputTokens: 4, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 } },
    ]);
  });
});

it("takes thoughts, log probabilities and refusals of the final body where events had none", async () => {
  const logprobs = { content: [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] }] };
  const message = { role: "assistant", content: "Hi", reasoning_content: "hm", refusal: null };
  const backend = backendOf(async ({ writer, partial, end }) => {
    await partial(writer.textDelta(0, "Hi"));
    end(writer.completed({ choices: [{ index: 0, message, logprobs, finish_reason: "stop" }] }));
  });
  const events = await run(backend, { sampling: { logprobs: 0 } });
  expect(without(events, "accepted", "usage", "finish")).toEqual([
    { type: "text", candidate: 0, delta: "Hi" },
    { type: "reasoning", candidate: 0, delta: "hm" },
    {
      type: "text",
      candidate: 0,
      delta: "",
      logprobs: [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top: [] }],
    },
  ]);
});

it("takes an answer that was not streamed though it should be", async () => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
  const message = { role: "assistant", content: "Hi", tool_calls: [call] };
  const backend = backendOf(({ writer, end }) =>
    end(writer.completed({ choices: [{ message, finish_reason: "tool_calls" }], usage: { prompt_tokens: 3 } })),
  );
  const events = await run(backend);
  expect(textOf(events)).toBe("Hi");
  expect(callsOf(events, 0)).toEqual([{ callId: "call_1", name: "f", arguments: "{}" }]);
  expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 3 } });
});

it("hands on the events of one read as one batch", async () => {
  const backend = backendOf(async ({ writer, operation, end }) => {
    for (let index = 0; index < 100; index += 1) operation.partial(writer.textDelta(0, "a"));
    end(writer.completed({}));
  });
  await backend.ready;
  const sizes: number[] = [];
  await backend.respond(requestOf(), (batch) => sizes.push(batch.length), new AbortController().signal);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(103);
  expect(sizes.length).toBeLessThan(10);
});
