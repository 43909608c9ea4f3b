import { expect, test } from "vitest";
import type { BenchLevel } from "../bench/run-bench.ts";
import { plot } from "../bench/show-result.ts";
import { createFirstNumbers, numbersFor } from "../bench/workload.ts";
import { runProgram } from "../program.ts";
import { events, type FakeOptions, fakeSurroundings, json, problem } from "../testing/fake-surroundings.ts";

const model = {
  id: "m:1b",
  name: "M",
  aliases: [],
  state: "loaded",
  capabilities: { chat: true, completion: true },
  emulated: [],
  limits: { context_tokens: 8192, parallel: 2 },
  details: {},
  runtimes: [{ id: "embedded", kind: "llama.cpp", state: "healthy" }],
};

function answer(outputTokens: number, usage: object | null = {}) {
  const end = {
    id: "resp_1",
    status: "incomplete",
    output: [],
    ...(usage && { usage: { input_tokens: 80, output_tokens: outputTokens, total_tokens: 0, ...usage } }),
  };
  const delta = { type: "response.output_text.delta", item_id: "i", index: 0, delta: "1 " };
  return events([
    { type: "response.created", sequence: 1, at_ms: 0, response: { id: "resp_1", status: "queued" } },
    { ...delta, sequence: 2, at_ms: 1 },
    { ...delta, sequence: 3, at_ms: 2 },
    { type: "response.incomplete", sequence: 4, at_ms: 3, response: end },
  ]);
}

function serviceOf(post: NonNullable<FakeOptions["service"]>[string], changes: object = {}): FakeOptions {
  return {
    service: {
      "GET /lmsp/v1/models/m%3A1b": json({ ...model, ...changes }),
      "POST /lmsp/v1/responses": post,
      "POST /lmsp/v1/responses/resp_1/cancel": json({ id: "resp_1", status: "cancelled" }),
    },
  };
}

async function bench(flags: readonly string[], options: FakeOptions) {
  const around = fakeSurroundings(options);
  const code = await runProgram(["bench", "m:1b", ...flags], around);
  return { code, ...around.written, requests: around.requests };
}

const small = ["--parallel", "1,3", "--rounds", "2", "--tokens", "16"];

test("measures each level and tells the numbers as JSON", async () => {
  const { code, output } = await bench([...small, "--json"], serviceOf(answer(16)));
  expect(code).toBe(0);
  expect(JSON.parse(output)).toMatchObject({
    model: "m:1b",
    runtime: "embedded",
    settings: { parallel: [1, 3], tokens: 16, rounds: 2, prompt_tokens: 256 },
    prompt: { input_tokens: 80, ttft_ms: expect.any(Number), tokens_per_second: expect.any(Number) },
    levels: [
      { parallel: 1, answers: 2, ended_early: 0, output_tokens: 32 },
      { parallel: 3, answers: 6, ended_early: 0, output_tokens: 96 },
    ],
  });
});

test("asks for 2 prompts to size, a warm-up round, 2 prompts alone and 2 rounds of each level, each prompt another one", async () => {
  const { requests } = await bench(small, serviceOf(answer(16)));
  const bodies = requests.filter(({ line }) => line === "POST /lmsp/v1/responses").map(({ body }) => body);
  expect(bodies).toHaveLength(2 + 3 + 2 + 2 + 6);
  expect(new Set(bodies.map((body) => JSON.stringify(body).slice(0, 60))).size).toBe(bodies.length);
  expect(bodies.at(-1)).toMatchObject({ input: { raw: true }, output: { max_tokens: 16 } });
});

test("a model that only chats is asked to count", async () => {
  const { requests } = await bench(small, serviceOf(answer(16), { capabilities: { chat: true } }));
  expect(requests.at(-1)?.body).toMatchObject({ input: expect.stringMatching(/^Count on .*\n\d{6} \d{6} /) });
});

test("answers that end early are told, with the tokens really made", async () => {
  const { output } = await bench(small, serviceOf(answer(5)));
  expect(output).toContain("8 of 8 answers ended before their limit (40 tokens in all)");
  expect(output).toContain("m:1b runs 2 at once; more wait, which their ttft shows.");
});

test("Ctrl-C ends every stream, on the service too", async () => {
  const open = events(
    [{ type: "response.created", sequence: 1, at_ms: 0, response: { id: "resp_1", status: "queued" } }],
    true,
  );
  const options = serviceOf(open);
  const around = fakeSurroundings(options);
  const ended = runProgram(["bench", "m:1b"], around);
  while (!around.requests.some(({ line }) => line === "POST /lmsp/v1/responses")) await Promise.resolve();
  around.send("SIGINT");
  expect(await ended).toBe(130);
  const cancelled = () => around.requests.some(({ line }) => line.endsWith("/cancel"));
  while (!cancelled()) await new Promise((resolve) => setTimeout(resolve, 5));
});

test.each<[string, readonly string[], FakeOptions, number, string]>([
  ["no service", [], {}, 3, "No service answers"],
  ["a model for embeddings", [], serviceOf(answer(1), { capabilities: { embeddings: true } }), 1, "neither chats nor"],
  ["a context that is too small", ["--prompt-tokens", "9000"], serviceOf(answer(1)), 1, "lower --prompt-tokens"],
  ["a refusal", [], serviceOf(problem("overloaded", 503, "Too much.")), 1, "Too much."],
  ["a runtime that counts nothing", [], serviceOf(answer(1, null)), 1, "counts no tokens"],
  ["wrong levels", ["--parallel", "1,x"], {}, 2, "no list such as 1,2,4"],
  ["too many streams", ["--parallel", "1000"], {}, 2, "from 1 to 256"],
  ["no rounds", ["--rounds", "0"], {}, 2, "not from 1 to 100"],
])("%s", async (_name, flags, options, code, message) => {
  const ended = await bench(flags, options);
  expect(ended.code).toBe(code);
  expect(ended.output).toBe("");
  expect(ended.errors).toContain(message);
});

test("a prompt's numbers follow from two that were counted", () => {
  expect(numbersFor(256, { numbers: 8, tokens: 20 }, { numbers: 32, tokens: 68 })).toBe(126);
  expect(numbersFor(1, { numbers: 8, tokens: 20 }, { numbers: 32, tokens: 68 })).toBe(1);
  expect(numbersFor(256, { numbers: 8, tokens: 0 }, { numbers: 32, tokens: 0 })).toBe(32);
});

test("first numbers have six digits and don't come back soon", () => {
  const next = createFirstNumbers(() => 0.999);
  const numbers = Array.from({ length: 600 }, next);
  expect(numbers.every((number) => number >= 100_000 && number < 1_000_000)).toBe(true);
  expect(new Set(numbers).size).toBe(600);
});

test("the plot, drawn and in ASCII", () => {
  const level = (parallel: number, tokensPerSecond: number | undefined) =>
    ({ parallel, tokensPerSecond }) as BenchLevel;
  const levels = [level(1, 33), level(16, 100), level(64, undefined)];
  const bars = (text: string) => text.split("\n").map((line) => line.replace(/ +/g, " "));
  expect(bars(plot(levels, true))).toEqual([" 1 |█████████████▏ 33.0", `16 |${"█".repeat(40)} 100`, "64 | 0.0"]);
  expect(bars(plot(levels, false))).toEqual([" 1 |############# 33.0", `16 |${"#".repeat(40)} 100`, "64 | 0.0"]);
});
