import { describe, expect, test } from "vitest";
import { gatheringMs, ReadingRate, ReadingRates, type StepLoad, sharePrompts, streamingStepMs } from "./plan.ts";

function load(decoding: number, areOthersWaiting = false): StepLoad {
  return { decoding, areOthersWaiting, batchTokens: 512 };
}

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
      expect(sharePrompts(remaining, load(decoding), new ReadingRate(1))).toEqual(slices);
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
      ["where tile and rest take too long, the tile alone", 0.07, [100], [64]],
    ])("%s", (_name, tokensPerMs, remaining, slices) => {
      expect(sharePrompts(remaining, load(0), new ReadingRate(tokensPerMs))).toEqual(slices);
    });
  });

  test("small steps while a request waits for a sequence: an abort is to free one soon", () => {
    expect(sharePrompts([1000], load(0, true), new ReadingRate(1))).toEqual([streamingStepMs]);
  });

  test("never more than a batch", () => {
    for (const [remaining, decoding] of [
      [[10_000, 10_000], 2],
      [[10_000], 0],
      [[600], 0],
    ] as const) {
      const slices = sharePrompts(remaining, load(decoding), new ReadingRate(100));
      expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(512 - decoding);
    }
  });

  test("more prompts than tokens: some wait, none starves the step", () => {
    const slices = sharePrompts([50, 60, 70, 80, 90, 100], load(0), new ReadingRate(0.01));
    expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(4);
  });
});

describe("gatheringMs", () => {
  test.each([
    ["nothing for what is read at once", 8, 1, 0.24],
    ["a small part of a short prompt's time", 40, 0.2, 6],
    ["never long", 2_000, 0.2, 30],
  ])("%s", (_name, tokens, tokensPerMs, ms) => {
    expect(gatheringMs(tokens, new ReadingRate(tokensPerMs))).toBeCloseTo(ms);
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

test("ReadingRates: each number of threads has its own; a new one begins at its part", () => {
  const rates = new ReadingRates(4);
  rates.current.observe(100, 10_000);
  const ofFour = rates.current.tokensPerMs;
  rates.use(2);
  expect(rates.current.tokensPerMs).toBe(ofFour / 2);
  rates.current.observe(100, 100_000);
  rates.use(4);
  expect(rates.current.tokensPerMs).toBe(ofFour);
});
