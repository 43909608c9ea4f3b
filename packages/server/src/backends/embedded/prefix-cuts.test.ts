/** Models whose cache gives no part of a prompt back: a prompt that begins like an earlier one is then read anew. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EngineProcess } from "./engine-process.ts";
import { askPieces } from "./testing/engine-harness.ts";
import { llamaModel, recurrentModel, slidingWindowModel, tinyTokens } from "./testing/tiny-models.ts";

const timeoutMs = 60_000;
/** Whether a cut leaves all that the next token has to see. */
const canGoOn = {
  llama: { farBack: true, nearTheEnd: true },
  "sliding window": { farBack: false, nearTheEnd: true },
  recurrent: { farBack: false, nearTheEnd: false },
} as const;
const models = { llama: llamaModel, "sliding window": slidingWindowModel, recurrent: recurrentModel };
/** 200 letters in no order. */
const start = Array.from({ length: 200 }, (_, place) => "helowrd "[Math.floor(place ** 1.7) % 8]).join("");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-prefix-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function startTiny(name: keyof typeof models, parallel: number): Promise<EngineProcess> {
  const modelPath = join(folder, `${name}.gguf`);
  await writeFile(modelPath, models[name]());
  const config = { modelPath, use: "text", contextTokens: 4_096, vocabularySize: tinyTokens.length, parallel } as const;
  const engine = new EngineProcess({ model: name, config });
  await engine.ready;
  return engine;
}

async function answer(engine: EngineProcess, text: string) {
  const { events, usages } = await askPieces(engine, [{ text, parseSpecial: false }], {
    maxTokens: 24,
    logprobs: 0,
    sampling: { logitBias: { 2: -100 } },
  });
  const probabilities = events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []));
  return { logprobs: probabilities.map(({ logprob }) => logprob), cached: usages[0]?.cachedTokens ?? 0 };
}

/** A prompt read by itself, and again after another one: the same to the model. @returns tokens that were kept */
async function partingFrom(engine: EngineProcess, first: string, second: string): Promise<number> {
  const fresh = await answer(engine, second);
  await answer(engine, first);
  const again = await answer(engine, second);
  expect(fresh.cached).toBe(0);
  expect(again.logprobs).toHaveLength(24);
  for (const [index, logprob] of again.logprobs.entries()) expect(logprob).toBeCloseTo(fresh.logprobs[index] ?? 0, 2);
  return again.cached;
}

describe.each(["llama", "sliding window", "recurrent"] as const)("%s", (name) => {
  test("a prompt that begins like the last one and parts from it", { timeout: timeoutMs }, async () => {
    const engine = await startTiny(name, 1);
    const farBack = await partingFrom(engine, `${start}${"hello ".repeat(1_500)}`, `${start}world`);
    const nearTheEnd = await partingFrom(engine, `hello ${start}hello world`, `hello ${start}world hello`);
    await engine.stop();
    process.stdout.write(`${name}: ${farBack} tokens kept far back, ${nearTheEnd} near the end\n`);
    expect({ farBack: farBack > 100, nearTheEnd: nearTheEnd > 100 }).toEqual(canGoOn[name]);
  });

  test("several at once, on sequences that move", { timeout: timeoutMs }, async () => {
    const engine = await startTiny(name, 4);
    // Batches of several sequences round a little differently.
    const texts = [1, 2, 3, 4].map((count) => `${start}${"world ".repeat(count)}`);
    const alone: number[][] = [];
    for (const text of texts) alone.push((await answer(engine, text)).logprobs);
    const together = await Promise.all(texts.map((text) => answer(engine, text)));
    await engine.stop();
    together.forEach(({ logprobs }, index) => {
      expect(logprobs[0]).toBeCloseTo(alone[index]?.[0] ?? 0, 1);
      expect(logprobs).toHaveLength(24);
    });
  });
});
