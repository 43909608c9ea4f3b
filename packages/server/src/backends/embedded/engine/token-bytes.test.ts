import { expect, test } from "vitest";
import { tokenBytes } from "./token-bytes.ts";

test.each([
  ["BPE space", "Ġthe", "bpe", false, " the"],
  ["BPE line break", "Ċ", "bpe", false, "\n"],
  ["BPE bytes of é", "Ã©", "bpe", false, "é"],
  ["BPE plain text", "<tool_call>Ġ", "bpe", true, "<tool_call>Ġ"],
  ["BPE keeps a byte's name", "<0x41>", "bpe", false, "<0x41>"],
  ["SentencePiece space", "▁the", "spm", false, " the"],
  ["SentencePiece byte", "<0x0A>", "spm", false, "\n"],
  ["WordPiece", "▁hello", "wpm", false, " hello"],
] as const)("%s", (_name, text, kind, isPlain, expected) => {
  expect(Buffer.from(tokenBytes(text, kind, isPlain)).toString()).toBe(expected);
});

test("a byte of a cut character stays a byte", () => {
  expect([...tokenBytes("<0xF0>", "spm", false)]).toEqual([0xf0]);
  expect([...tokenBytes("ð", "bpe", false)]).toEqual([0xf0]);
});

test("every byte has its letter in GPT-2's alphabet", () => {
  const letters = Array.from({ length: 324 }, (_, code) => String.fromCodePoint(code));
  const bytes = new Set(
    letters.flatMap((letter) => (letter.length === 1 ? [...tokenBytes(letter, "bpe", false)] : [])),
  );
  expect(bytes.size).toBe(256);
});
