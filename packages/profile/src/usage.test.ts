import { expect, it } from "vitest";
import { readUsage, toBothSpellings, toCompletionUsage, toResponsesUsage } from "./usage.ts";

const whole = { inputTokens: 4, outputTokens: 3, totalTokens: 7, cachedInputTokens: 2, reasoningTokens: 1 };

it("reads each spelling, also what it wrote itself", () => {
  expect(readUsage({ input_tokens: 4, output_tokens: 3, total_tokens: 7 })).toEqual({
    inputTokens: 4,
    outputTokens: 3,
    totalTokens: 7,
  });
  for (const spell of [toCompletionUsage, toResponsesUsage, toBothSpellings]) {
    expect(readUsage(spell(whole))).toEqual(whole);
  }
});

it("adds up a total and invents nothing else", () => {
  expect(readUsage({ prompt_tokens: 4, completion_tokens: 3 })).toEqual({
    inputTokens: 4,
    outputTokens: 3,
    totalTokens: 7,
  });
  expect(readUsage({ prompt_tokens: "4", completion_tokens: -1, total_tokens: 1.5 })).toEqual({});
  expect(toBothSpellings({})).toEqual({});
});
