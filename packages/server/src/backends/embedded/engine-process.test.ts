import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineProcess } from "./engine-process.ts";
import type { EngineEvent } from "./messages.ts";
import { ask, CallFailed, startEngine } from "./testing/engine-harness.ts";
import { missingModels } from "./testing/model-files.ts";

const neverEnds = { 0: -100, 2: -100 };
const longText = "The history of rivers in Europe is long and full of trade, floods, mills and bridges. ".repeat(62);
const timeoutMs = 120_000;

let engine: EngineProcess;

beforeAll(async () => {
  engine = startEngine();
  const ready = await engine.ready;
  expect(ready.controlTokens).toContain("<|im_start|>");
  expect(ready).toMatchObject({ bosToken: "<|im_start|>", eosToken: "<|im_end|>", canInsert: false });
}, timeoutMs);

afterAll(async () => {
  await engine.stop();
});

function logprobsOf(events: readonly EngineEvent[]) {
  return events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []));
}

describe.skipIf(missingModels !== undefined)("answers", { timeout: timeoutMs }, () => {
  test("greedy text is the same every time and ends by itself", async () => {
    const [first, second] = [
      await ask(engine, "What is the capital of France?"),
      await ask(engine, "What is the capital of France?"),
    ];
    expect(first.texts).toEqual(["The capital of France is Paris."]);
    expect(second.texts).toEqual(first.texts);
    expect(first.reasons).toEqual(["eos"]);
    expect(first.usages[0]).toMatchObject({ inputTokens: 16, outputTokens: 8 });
  });

  test("accepted comes first, and text comes in pieces", async () => {
    const { events } = await ask(engine, "Count from one to ten.", { maxTokens: 12 });
    expect(events[0]).toMatchObject({ type: "accepted", inputTokens: 15 });
    expect(events.filter((event) => event.type === "text").length).toBeGreaterThan(5);
    expect(events.at(-1)).toMatchObject({ type: "done", reason: "length" });
  });

  test("maxTokens is exact, and 1 and 0 are possible", async () => {
    for (const maxTokens of [5, 1, 0]) {
      const { reasons, usages } = await ask(engine, "Tell me a story.", { maxTokens });
      expect(reasons).toEqual(["length"]);
      expect(usages[0]?.outputTokens).toBe(maxTokens);
    }
  });

  test("a seed fixes the text, another one changes it", async () => {
    const sampling = { temperature: 1 };
    const seeded = (seed: number) =>
      ask(engine, "Tell me a story.", { maxTokens: 24, sampling: { ...sampling, seed } });
    const [a, b, c] = await Promise.all([seeded(5), seeded(5), seeded(6)]);
    expect(b.texts).toEqual(a.texts);
    expect(c.texts).not.toEqual(a.texts);
  });

  test("a stop text over token borders ends the answer before it", async () => {
    const whole = await ask(engine, "Count from one to ten in words.", { maxTokens: 40 });
    const text = whole.texts[0] ?? "";
    const stop = text.slice(9, 16);
    const cut = await ask(engine, "Count from one to ten in words.", { maxTokens: 40, stop: ["never there", stop] });
    expect(cut.texts).toEqual([text.slice(0, text.indexOf(stop))]);
    expect(cut.reasons).toEqual(["stop_string"]);
  });

  test("candidates differ by seed and read the prompt once", async () => {
    const { texts, usages } = await ask(engine, `${longText.slice(0, 200)} Tell me more.`, {
      candidates: 3,
      maxTokens: 12,
      sampling: { temperature: 1, seed: 1 },
    });
    expect(new Set(texts).size).toBeGreaterThan(1);
    const read = usages.map((usage) => usage.inputTokens - usage.cachedTokens).sort((a, b) => b - a);
    expect(read.slice(1)).toEqual([1, 1]);
  });

  test("a biased token is barred", async () => {
    const { reasons, texts } = await ask(engine, "Say hi.", { maxTokens: 60, sampling: { logitBias: neverEnds } });
    expect(reasons).toEqual(["length"]);
    expect(texts[0]?.length).toBeGreaterThan(100);
  });

  test("a repeat penalty changes a repeating answer", async () => {
    const plain = await ask(engine, "Repeat the word tea ten times.", { maxTokens: 30 });
    const fined = await ask(engine, "Repeat the word tea ten times.", {
      maxTokens: 30,
      sampling: { repeatPenalty: 1.8 },
    });
    expect(fined.texts).not.toEqual(plain.texts);
  });

  test("names of control tokens in a client's text stay text", async () => {
    const plain = await ask(engine, "a", { maxTokens: 1 });
    const tricky = await ask(engine, "a<|im_end|>", { maxTokens: 1 });
    const more = (tricky.usages[0]?.inputTokens ?? 0) - (plain.usages[0]?.inputTokens ?? 0);
    expect(more).toBeGreaterThan(1);
  });

  test("a prompt that a cache still holds is not read again", async () => {
    const text = longText.slice(0, 300);
    await ask(engine, text, { maxTokens: 1 });
    const { usages } = await ask(engine, text, { maxTokens: 1 });
    expect(usages[0]?.cachedTokens).toBe((usages[0]?.inputTokens ?? 0) - 1);
  });
});

describe.skipIf(missingModels !== undefined)("log probabilities", { timeout: timeoutMs }, () => {
  test("are the model's own: equal at temperature 0 and 0.2", async () => {
    const cold = await ask(engine, "Name a colour.", { maxTokens: 3, logprobs: 3 });
    const warm = await ask(engine, "Name a colour.", {
      maxTokens: 3,
      logprobs: 3,
      sampling: { temperature: 0.2, seed: 7 },
    });
    const [first, other] = [logprobsOf(cold.events), logprobsOf(warm.events)];
    expect(first).toHaveLength(3);
    expect(first[0]?.top.map((entry) => entry.token)).toEqual(other[0]?.top.map((entry) => entry.token));
    for (const [index, entry] of (first[0]?.top ?? []).entries()) {
      expect(entry.logprob).toBeCloseTo(other[0]?.top[index]?.logprob ?? 0, 3);
    }
    const best = first[0]?.top[0];
    expect(first[0]?.logprob).toBeCloseTo(best?.logprob ?? 0, 5);
    expect(Buffer.from(best?.bytes ?? []).toString()).toBe(best?.token);
  });

  test("the bytes of all tokens make the text", async () => {
    const { events, texts } = await ask(engine, "x", {
      maxTokens: 60,
      logprobs: 0,
      grammar: `root ::= "na\u00efve \u{1F980}\u6f22"`,
    });
    const bytes = logprobsOf(events).flatMap((entry) => [...entry.bytes]);
    expect(Buffer.from(bytes).toString()).toBe(texts[0]);
  });
});

describe.skipIf(missingModels !== undefined)("grammar", { timeout: timeoutMs }, () => {
  test("forces a text whose characters are cut over tokens, and it comes out whole", async () => {
    const wanted = "h\u00e9llo \u{1F980}\u{1F30D} \u6f22\u5b57 na\u00efve";
    const { texts, events, reasons } = await ask(engine, "x", { maxTokens: 60, grammar: `root ::= "${wanted}"` });
    expect(texts).toEqual([wanted]);
    expect(reasons).toEqual(["eos"]);
    const pieces = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
    expect(pieces.join("")).not.toContain("\ufffd");
  });

  test("an answer that ends inside a character leaves the part out", async () => {
    const grammar = `root ::= "${"\u{1F980}".repeat(8)}"`;
    for (const maxTokens of [1, 2, 3, 4, 5]) {
      const { texts } = await ask(engine, "x", { maxTokens, grammar });
      expect(texts[0]).toMatch(/^\u{1F980}*$/u);
    }
  });

  test("a bad one is refused", async () => {
    const failed = await ask(engine, "x", { grammar: "root = (" }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(CallFailed);
    expect(failed).toMatchObject({ failure: { kind: "bad-grammar" } });
  });
});

describe.skipIf(missingModels !== undefined)("limits", { timeout: timeoutMs }, () => {
  test.each([
    ["a little too long a prompt", "word ".repeat(2_100)],
    ["megabytes, which are only estimated", "word ".repeat(200_000)],
  ])("%s is refused with numbers", async (_name, text) => {
    const failed = await ask(engine, text).catch((error: unknown) => error);
    expect(failed).toMatchObject({ failure: { kind: "context-length", limit: 2_048 } });
    const requested = failed instanceof CallFailed ? (failed.failure.requested ?? 0) : 0;
    expect(requested).toBeGreaterThan(2_048);
  });

  test("a bias for a token that is none is refused", async () => {
    const failed = await ask(engine, "x", { sampling: { logitBias: { 49152: 1 } } }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ failure: { kind: "bad-bias" } });
  });

  test("eight at once share four sequences and all end", async () => {
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        ask(engine, `Write about topic ${index}.`, { maxTokens: 24, sampling: { logitBias: neverEnds } }),
      ),
    );
    const tokens = answers.reduce((sum, answer) => sum + (answer.usages[0]?.outputTokens ?? 0), 0);
    const seconds = (performance.now() - startedAt) / 1_000;
    process.stdout.write(
      `8 answers on 4 sequences: ${tokens} tokens, ${(tokens / seconds).toFixed(0)} tokens a second\n`,
    );
    expect(tokens).toBe(8 * 24);
  });
});

describe.skipIf(missingModels !== undefined)("abort", { timeout: timeoutMs }, () => {
  /** @returns milliseconds from the abort until the engine let go */
  async function abortAt(when: (event: EngineEvent) => boolean, text: string): Promise<number> {
    const controller = new AbortController();
    let abortedAt = 0;
    const onEvent = (event: EngineEvent) => {
      if (!when(event)) return;
      abortedAt = performance.now();
      controller.abort(new Error("stop it"));
    };
    const call = ask(engine, text, { sampling: { logitBias: neverEnds } }, { signal: controller.signal, onEvent });
    await expect(call).rejects.toThrow("stop it");
    return performance.now() - abortedAt;
  }

  test("is heard in a long prompt and while decoding", async () => {
    let texts = 0;
    const inPrompt = await abortAt(
      (event) => event.type === "prompt" && event.doneTokens > 50,
      `${Math.random()} ${longText}`,
    );
    const decoding = await abortAt((event) => event.type === "text" && ++texts === 5, "Tell me a story.");
    process.stdout.write(`abort in a prompt ${inPrompt.toFixed(0)} ms, while decoding ${decoding.toFixed(0)} ms\n`);
    const next = await ask(engine, "What is the capital of France?");
    expect(next.texts).toEqual(["The capital of France is Paris."]);
  });

  test("is heard in the queue, and the sequences go on", async () => {
    const running = Array.from({ length: 4 }, () =>
      ask(engine, "Tell me a story.", { maxTokens: 20, sampling: { logitBias: neverEnds } }),
    );
    const controller = new AbortController();
    const queued = ask(engine, "Never read.", {}, { signal: controller.signal });
    const startedAt = performance.now();
    controller.abort(new Error("gone"));
    await expect(queued).rejects.toThrow("gone");
    process.stdout.write(`abort in the queue ${(performance.now() - startedAt).toFixed(0)} ms\n`);
    const answers = await Promise.all(running);
    expect(answers.map((answer) => answer.reasons[0])).toEqual(["length", "length", "length", "length"]);
  });

  test("before the start nothing is run", async () => {
    await expect(ask(engine, "x", {}, { signal: AbortSignal.abort(new Error("early")) })).rejects.toThrow("early");
  });

  test("neighbours' streams go on while a long prompt is read", async () => {
    const times: number[] = [];
    let during = 0;
    let isReading = false;
    const onText = (event: EngineEvent) => {
      if (event.type !== "text") return;
      times.push(performance.now());
      if (isReading) during += 1;
    };
    const onPrompt = (event: EngineEvent) => {
      if (event.type === "prompt") isReading = event.doneTokens < event.totalTokens;
    };
    const neighbour = ask(
      engine,
      "Tell me a story.",
      { maxTokens: 40, sampling: { logitBias: neverEnds } },
      { onEvent: onText },
    );
    await ask(engine, `${Math.random()} ${longText.slice(0, 2_000)}`, { maxTokens: 1 }, { onEvent: onPrompt });
    await neighbour;
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
    process.stdout.write(`longest gap of a neighbour's stream ${Math.max(...gaps).toFixed(0)} ms\n`);
    expect(during).toBeGreaterThan(3);
  });
});
