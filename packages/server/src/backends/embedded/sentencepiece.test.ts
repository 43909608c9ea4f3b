/** A SentencePiece vocabulary through the real engine: byte tokens, the space before a text, stop texts. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PromptPiece } from "./chat-format/index.ts";
import { EngineProcess } from "./engine-process.ts";
import { askPieces, type Settings } from "./testing/engine-harness.ts";
import { llamaModel, tinyTokens } from "./testing/tiny-models.ts";

const timeoutMs = 60_000;
let folder: string;
let engine: EngineProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-spm-"));
  const modelPath = join(folder, "sentencepiece.gguf");
  await writeFile(modelPath, llamaModel());
  const config = { modelPath, use: "text", contextTokens: 512, parallel: 2 } as const;
  engine = new EngineProcess({ model: "spm", config: { ...config, vocabularySize: tinyTokens.length } });
  const ready = await engine.ready;
  expect(ready.controlTokens).toEqual(expect.arrayContaining(["<s>", "</s>", "[INST]", "[/INST]"]));
}, timeoutMs);

afterAll(async () => {
  await engine.stop();
  await rm(folder, { recursive: true, force: true });
});

const plain = (text: string): PromptPiece => ({ text, parseSpecial: false });
const template = (text: string): PromptPiece => ({ text, parseSpecial: true });

async function countTokens(...pieces: PromptPiece[]): Promise<number> {
  const { usages } = await askPieces(engine, pieces, { maxTokens: 1 });
  return usages[0]?.inputTokens ?? 0;
}

/** Forces an answer, with what its tokens were. */
async function force(text: string, settings: Settings = {}) {
  const grammar = `root ::= ${JSON.stringify(text)}`;
  const answer = await askPieces(engine, [plain("hello")], { maxTokens: 64, logprobs: 0, grammar, ...settings });
  const listed = answer.events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []));
  return { ...answer, text: answer.texts[0], bytes: Buffer.from(listed.flatMap(({ bytes }) => [...bytes])) };
}

test.each([
  ["one word gets a space before it: <s> ▁hello", 2, [plain("hello")]],
  ["two words: <s> ▁hello ▁world", 3, [plain("hello world")]],
  ["two pieces without a control token between are one text", 3, [plain("hello"), plain(" world")]],
  [
    "after a control token a text gets its space again",
    6,
    [template("<s>[INST]"), plain("hello"), template("[/INST]"), plain("hello world")],
  ],
  ["the template's own <s> is the only one", 2, [template("<s>"), plain("hello")]],
  ["a letter that is no token is read as its bytes: <s> ▁ and three", 5, [plain("日")]],
  ["names of control tokens in a client's text stay text", 1 + 1 + 6, [plain("[INST]")]],
])("%s", { timeout: timeoutMs }, async (_name, tokens, pieces) => {
  expect(await countTokens(...pieces)).toBe(tokens);
});

test("letters that come as byte tokens come out whole", { timeout: timeoutMs }, async () => {
  const wanted = "h\u00e9llo \u{1F980} \u6f22\u5b57";
  const { text, bytes, reasons, events } = await force(wanted);
  expect(text).toBe(wanted);
  expect(bytes.toString()).toBe(wanted);
  expect(reasons).toEqual(["eos"]);
  const pieces = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
  expect(pieces.join("")).not.toContain("\ufffd");
  expect(pieces.length).toBeGreaterThan(3);
});

test("an answer keeps the space of its first token", { timeout: timeoutMs }, async () => {
  expect((await force(" hello world")).text).toBe(" hello world");
});

test("a stop text is found over byte tokens and spaces", { timeout: timeoutMs }, async () => {
  const { text, reasons } = await force("hello \u6f22\u5b57 world", { stop: ["\u5b57 w"] });
  expect(text).toBe("hello \u6f22");
  expect(reasons).toEqual(["stop_string"]);
});

test("the limit inside a letter leaves its part out", { timeout: timeoutMs }, async () => {
  for (const maxTokens of [1, 2, 3, 4, 5]) {
    const { text } = await force("\u6f22\u6f22", { maxTokens });
    expect(text).toBe("\u6f22".repeat(Math.floor(maxTokens / 3)));
  }
});
