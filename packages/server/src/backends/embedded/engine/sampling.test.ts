import { expect, test } from "vitest";
import { samplingSettings } from "../parameters.ts";
import { samplerConfig } from "./sampling.ts";

const model = { contextTokens: 100, vocabularySize: 50 };
const config = (sampling: Parameters<typeof samplingSettings>[0], candidate = 0, prompt: number[] = []) =>
  samplerConfig(samplingSettings({ seed: 7, ...sampling }), candidate, prompt, model);

test("defaults are llama.cpp's", () => {
  expect(config({})).toEqual({ temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, seed: 7 });
});

test("what changes nothing is left out", () => {
  expect(config({ temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1 })).toEqual({ temperature: 0, seed: 7 });
});

test.each([
  ["the next candidate", 7, 1, 8],
  ["a negative seed", -3, 0, 4_294_967_293],
  ["a large seed", 2 ** 40 + 5, 0, 5],
  ["llama.cpp's word for any seed", 2 ** 32 - 1, 0, 1],
])("seed: %s", (_name, seed, candidate, expected) => {
  expect(config({ seed }, candidate).seed).toBe(expected);
});

test("penalties look back into the prompt", () => {
  const prompt = [1, 2, 3, 4];
  expect(config({ presencePenalty: 1, repeatLastN: 2 }, 0, prompt)).toMatchObject({
    repeatPenaltyPresencePenalty: 1,
    repeatPenaltyMaxTokens: 2,
    repeatPenaltyTokens: Uint32Array.of(3, 4),
  });
  expect(config({ repeatPenalty: 1.1, repeatLastN: -1 }).repeatPenaltyMaxTokens).toBe(100);
  expect(config({ repeatPenalty: 1.1, repeatLastN: 0 }).repeatPenalty).toBeUndefined();
});

test("a bias of -100 bars, others are kept, and a token must exist", () => {
  expect(config({ logitBias: { 3: -100, 4: 2 } })).toMatchObject({
    tokenBiasKeys: Uint32Array.of(3, 4),
    tokenBiasValues: Float32Array.of(-Infinity, 2),
  });
  expect(() => config({ logitBias: { 50: 1 } })).toThrow(/no token 50/);
});

test("typical_p is refused, but 1 changes nothing", () => {
  expect(() => samplingSettings({ typicalP: 0.5 })).toThrow(/typical_p/);
  expect(() => samplingSettings({ typicalP: 1 })).not.toThrow();
});
