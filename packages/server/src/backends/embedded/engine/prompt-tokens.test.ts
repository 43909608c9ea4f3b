import { describe, expect, test } from "vitest";
import { EngineError } from "./engine-error.ts";
import { embeddingTokens, promptTokens, segmentPrompt, type Tokenizer } from "./prompt-tokens.ts";

const special = [
  { id: 1, text: "<s>", stripsBefore: false, stripsAfter: false },
  { id: 2, text: "<end>", stripsBefore: false, stripsAfter: false },
  { id: 3, text: "<strip>", stripsBefore: true, stripsAfter: true },
  { id: 4, text: "<s>>", stripsBefore: false, stripsAfter: false },
];
const template = (text: string) => ({ text, parseSpecial: true });
const user = (text: string) => ({ text, parseSpecial: false });

/** One token for each character. */
const tokenizer: Tokenizer = {
  tokenize: (text) => [...text].map((letter) => letter.codePointAt(0) ?? 0),
  special,
  first: undefined,
  last: undefined,
  infill: undefined,
};

describe("segmentPrompt", () => {
  test.each([
    ["template and text are joined", [template("<s>user "), user("hi"), template(" you<end>")], [1, "user hi you", 2]],
    ["a name in a client's text stays text", [template("<s>"), user("a<end>b")], [1, "a<end>b"]],
    ["a name over a border stays text", [template("<en"), user("d>")], ["<end>"]],
    ["the longest name wins", [template("<s>>x")], [4, "x"]],
    ["white space belongs to a stripping token", [template("a \n<strip>"), user("\n b")], ["a", 3, "b"]],
    ["nothing at all", [], []],
  ])("%s", (_name, pieces, segments) => {
    expect(segmentPrompt(pieces, special)).toEqual(segments);
  });
});

describe("promptTokens", () => {
  const prompt = (text: string) => ({ kind: "pieces", pieces: [template(text)] }) as const;

  test("the first token is put in once", () => {
    const withFirst = { ...tokenizer, first: 1 };
    expect(promptTokens(prompt("a"), withFirst, 100)).toEqual([1, 97]);
    expect(promptTokens(prompt("<s>a"), withFirst, 100)).toEqual([1, 97]);
  });

  test("an empty prompt is refused", () => {
    expect(() => promptTokens(prompt(""), tokenizer, 100)).toThrow(EngineError);
  });

  test("infill needs its tokens", () => {
    const infill = { kind: "infill", prefix: "a", suffix: "b" } as const;
    expect(() => promptTokens(infill, tokenizer, 100)).toThrow(/filling in/);
    const able = { ...tokenizer, infill: { prefix: 7, suffix: 8, middle: 9 } };
    expect(promptTokens(infill, able, 100)).toEqual([7, 97, 8, 98, 9]);
  });

  test("a hopeless text is measured by its beginning", () => {
    let longest = 0;
    const counting = {
      ...tokenizer,
      tokenize: (text: string) => {
        longest = Math.max(longest, text.length);
        return tokenizer.tokenize(text);
      },
    };
    expect(() => promptTokens(prompt("x".repeat(1_000_000)), counting, 100)).toThrow(/about 1000000 tokens/);
    expect(longest).toBe(65_536);
  });
});

describe("embeddingTokens", () => {
  const around = { ...tokenizer, first: 101, last: 102 };

  test.each([
    ["a text", "ab", { head: [101], body: [97, 98], tail: [102] }],
    ["an empty text", "", { head: [101], body: [], tail: [102] }],
    ["token ids", [5, 6], { head: [101], body: [5, 6], tail: [102] }],
    ["token ids that have them already", [101, 5, 102], { head: [], body: [101, 5, 102], tail: [] }],
  ])("%s", (_name, input, expected) => {
    expect(embeddingTokens(input, around, 100, false)).toEqual(expected);
  });
});
