import { describe, expect, test } from "vitest";
import { ReadingRate, sharePrompts, stepTargetMs } from "./plan.ts";

describe("sharePrompts", () => {
  // One token a millisecond: a step holds stepTargetMs tokens.
  test.each([
    ["nothing to read", [], 4, []],
    ["one long prompt takes the step", [1000], 0, [stepTargetMs]],
    ["decoding sequences take theirs first", [1000], 10, [stepTargetMs - 10]],
    ["two share evenly", [1000, 1000], 0, [stepTargetMs / 2, stepTargetMs / 2]],
    ["a short one leaves the rest", [1000, 5], 0, [stepTargetMs - 5, 5]],
    ["many decoding still leave some", [1000], 200, [4]],
  ])("%s", (_name, remaining, decoding, slices) => {
    expect(sharePrompts(remaining, decoding, 512, new ReadingRate(1))).toEqual(slices);
  });

  test("never more than a batch", () => {
    const slices = sharePrompts([10_000, 10_000], 2, 512, new ReadingRate(100));
    expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(510);
  });

  test("more prompts than tokens: some wait, none starves the step", () => {
    const slices = sharePrompts([50, 60, 70, 80, 90, 100], 0, 512, new ReadingRate(0.01));
    expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(4);
  });
});

describe("ReadingRate", () => {
  test("falls quickly and rises slowly", () => {
    const rate = new ReadingRate(1);
    rate.observe(10, 100);
    expect(rate.tokensPerMs).toBeCloseTo(0.55);
    rate.observe(100, 50);
    expect(rate.tokensPerMs).toBeLessThan(1);
  });

  test("a step of single tokens says nothing", () => {
    const rate = new ReadingRate(1);
    rate.observe(1, 100);
    expect(rate.tokensPerMs).toBe(1);
  });
});
