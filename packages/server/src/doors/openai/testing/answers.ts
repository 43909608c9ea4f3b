import type { BackendEvent, TokenLogprob } from "@plenum/core";
import type { ScriptedAnswer } from "@plenum/core/testing";

/** Scripted answers that the tests of this door share. */

export function answerOf(...events: readonly BackendEvent[]): ScriptedAnswer {
  return function* () {
    yield events;
  };
}

const usage = { inputTokens: 4, outputTokens: 2, cachedInputTokens: 1, reasoningTokens: 1 };

function logprob(token: string, value: number): TokenLogprob {
  const bytes = [...new TextEncoder().encode(token)];
  return { token, logprob: value, bytes, top: [{ token, logprob: value, bytes }] };
}

/** Two pieces of text. */
export const hello = answerOf(
  { type: "accepted", inputTokens: 4 },
  { type: "text", candidate: 0, delta: "Hel" },
  { type: "text", candidate: 0, delta: "lo" },
  { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "eos" },
  { type: "usage", usage },
);

/** Reasoning, text with log probabilities, then two calls whose arguments interleave. */
export const everything = answerOf(
  { type: "accepted", inputTokens: 4 },
  { type: "reasoning", candidate: 0, delta: "Hm" },
  { type: "text", candidate: 0, delta: "A\n", logprobs: [logprob("A\n", -0.5)] },
  { type: "function_call", candidate: 0, call: 0, name: "f", callId: "call_a" },
  { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"a":' },
  { type: "function_call", candidate: 0, call: 1, name: "g", callId: "call_b" },
  { type: "function_call_arguments", candidate: 0, call: 1, delta: "{}" },
  { type: "function_call_arguments", candidate: 0, call: 0, delta: "1}" },
  { type: "finish", candidate: 0, finishReason: "tool_calls" },
  { type: "usage", usage },
);

/** Two candidates side by side that end differently. */
export const twoCandidates = answerOf(
  { type: "accepted" },
  { type: "text", candidate: 0, delta: "a" },
  { type: "text", candidate: 1, delta: "b" },
  { type: "text", candidate: 0, delta: "c" },
  { type: "finish", candidate: 1, finishReason: "stop" },
  { type: "finish", candidate: 0, finishReason: "length" },
  { type: "usage", usage },
);

export const refusal = answerOf(
  { type: "accepted" },
  { type: "refusal", candidate: 0, delta: "I " },
  { type: "refusal", candidate: 0, delta: "won't." },
  { type: "finish", candidate: 0, finishReason: "stop" },
  { type: "usage", usage },
);

export const nothing = answerOf(
  { type: "accepted" },
  { type: "finish", candidate: 0, finishReason: "stop" },
  { type: "usage", usage },
);
