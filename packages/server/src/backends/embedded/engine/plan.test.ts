import { describe, expect, test } from "vitest";
import { ReadingRate, sharePrompts, streamingStepMs } from "./plan.ts";

describe("sharePrompts", () => {
  describe("beside streams: what a step of streamingStepMs leaves, at one token a millisecond", () => {
    const room = streamingStepMs;
    test.each([
      ["nothing to read", [], 4, []],
      ["decoding sequences take theirs first", [1000], 10, [room - 10]],
      ["two share evenly", [1000, 1000], 2, [(room - 2) / 2, (room - 2) / 2]],
      ["a short one leaves the rest", [1000, 5], 1, [room - 6, 5]],
      ["many decoding still leave some", [1000], 200, [4]],
    ])("%s", (_name, remaining, decoding, slices) => {
      expect(sharePrompts(remaining, decoding, 512, new ReadingRate(1))).toEqual(slices);
    });
  });

  describe("with no stream to wait for it", () => {
    test.each([
      ["whole tiles, as many as fit", 1, [1000], [192]],
      ["one tile where a step holds less", 0.1, [1000], [64]],
      ["a rest without a tile of its own goes with the last", 0.1, [100], [100]],
      ["a rest with a tile of its own does not", 0.1, [128], [64]],
      ["a short prompt goes at once", 0.1, [40], [40]],
      ["several share the tiles", 0.1, [50, 50], [32, 32]],
      ["where a tile takes too long, what a step holds", 0.05, [1000], [12]],
    ])("%s", (_name, tokensPerMs, remaining, slices) => {
      expect(sharePrompts(remaining, 0, 512, new ReadingRate(tokensPerMs))).toEqual(slices);
    });
  });

  test("never more than a batch", () => {
    for (const [remaining, decoding] of [
      [[10_000, 10_000], 2],
      [[10_000], 0],
      [[600], 0],
    ] as const) {
      const slices = sharePrompts(remaining, decoding, 512, new ReadingRate(100));
      expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(512 - decoding);
    }
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
