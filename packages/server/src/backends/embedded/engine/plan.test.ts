import { describe, expect, test } from "vitest";
import { gatheringMs, planReading, type Reading, ReadingRate, ReadingRates, type StepLoad, stepMs } from "./plan.ts";

function load(decoding: number, areOthersWaiting = false): StepLoad {
  return { decoding, areOthersWaiting, batchTokens: 512, passMs: 10 };
}

/** Rates of one thread that have settled on a number of tokens a millisecond. */
function settled(tokensPerMs: number, tilesPerMs = tokensPerMs): ReadingRates {
  const rates = new ReadingRates(1);
  for (let step = 0; step < 60; step++) {
    rates.at(0).observe(tokensPerMs * 1_000, 1_000);
    rates.tiles.observe(tilesPerMs * 1_000, 1_000);
  }
  return rates;
}

function fresh(remainingTokens: number, readingMs = 0): Reading {
  return { doneTokens: 0, remainingTokens, readingMs };
}

describe("planReading", () => {
  describe("what a step of stepMs leaves beside streams, at one token a millisecond", () => {
    test.each([
      ["nothing to read", [], 4, []],
      ["decoding sequences take theirs first", [1000], 20, [stepMs - 20]],
      ["two share evenly", [1000, 1000], 2, [(stepMs - 2) / 2, (stepMs - 2) / 2]],
      ["a short one leaves the rest", [1000, 25], 1, [stepMs - 26, 25]],
      ["equally many, whatever division leaves over", [50, 50, 50], 1, [19, 19, 19]],
      ["many decoding still leave some", [1000], 200, [4]],
    ])("%s", (_name, remaining, decoding, slices) => {
      const rest = remaining.map((tokens) => fresh(tokens, 60_000));
      expect(planReading(rest, load(decoding), settled(1.001)).slices).toEqual(slices);
    });
  });

  describe("a lone prompt", () => {
    test.each([
      ["a short step at first: an abort is heard soon", settled(0.151), fresh(1000), [9]],
      ["whole tiles where a short step holds them", settled(2.51), fresh(1000), [128]],
      ["a rest that fills no tile goes with the last", settled(2.51), fresh(150), [150]],
      ["a tile once it takes no more than a tenth of the reading", settled(0.101, 0.151), fresh(500, 4_300), [64]],
      ["no tile before", settled(0.101, 0.151), fresh(500, 4_100), [6]],
      ["more tiles later", settled(0.101, 0.151), fresh(5000, 13_000), [192]],
    ])("%s", (_name, rates, prompt, slices) => {
      expect(planReading([prompt], load(0), rates).slices).toEqual(slices);
    });

    test("of a large model, whose every pass takes long: a tile at once unless it takes far too long", () => {
      const large = { ...load(0), passMs: 100 };
      expect(planReading([fresh(1000)], large, settled(0.071)).slices).toEqual([64]);
      expect(planReading([fresh(1000)], large, settled(0.05)).slices).toEqual([4]);
    });

    test("a step of tiles tells about tiles, a short one about its stretch of the prompt", () => {
      const rates = settled(0.15);
      expect(planReading([fresh(1000, 60_000)], load(0), rates).rate).toBe(rates.tiles);
      expect(planReading([{ ...fresh(100), doneTokens: 900 }], load(0), rates).rate).toBe(rates.at(900));
    });
  });

  test("several prompts are read together in larger steps while nobody streams", () => {
    expect(planReading([fresh(1000), fresh(1000)], load(0), settled(0.201)).slices).toEqual([25, 25]);
  });

  test("small steps while a request waits for a sequence: an abort is to free one soon", () => {
    expect(planReading([fresh(1000, 60_000)], load(0, true), settled(1.001)).slices).toEqual([stepMs]);
  });

  test("never more than a batch", () => {
    for (const [remaining, decoding] of [
      [[10_000, 10_000], 2],
      [[10_000], 0],
      [[600], 0],
    ] as const) {
      const { slices } = planReading(
        remaining.map((tokens) => fresh(tokens)),
        load(decoding),
        settled(100),
      );
      expect(slices.reduce((sum, slice) => sum + slice, 0)).toBe(512 - decoding);
    }
  });

  test("more prompts than tokens: some wait, none starves the step", () => {
    const prompts = [50, 60, 70, 80, 90, 100].map((tokens) => fresh(tokens));
    const { slices } = planReading(prompts, load(0), settled(0.01));
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

describe("ReadingRates", () => {
  test("each number of threads has its own; a new one begins at its part", () => {
    const rates = new ReadingRates(4);
    rates.at(0).observe(100, 10_000);
    const ofFour = rates.at(0).tokensPerMs;
    rates.use(2);
    expect(rates.at(0).tokensPerMs).toBe(ofFour / 2);
    rates.at(0).observe(100, 100_000);
    rates.use(4);
    expect(rates.at(0).tokensPerMs).toBe(ofFour);
  });

  test("a prompt's later stretch has its own, which begins at the one before", () => {
    const rates = new ReadingRates(1);
    rates.at(300).observe(100, 1_000);
    expect(rates.at(0).tokensPerMs).toBe(0.2);
    expect(rates.at(2_000).tokensPerMs).toBe(rates.at(300).tokensPerMs);
  });
});
