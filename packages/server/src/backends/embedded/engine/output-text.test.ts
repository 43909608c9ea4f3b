import type { TokenLogprob } from "@plenum/core";
import { describe, expect, test } from "vitest";
import { OutputText } from "./output-text.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const logprob = (token: string): TokenLogprob => ({ token, logprob: -1, bytes: [...bytes(token)], top: [] });

describe("OutputText", () => {
  test.each(["é", "漢字", "🦀", "a🦀b🌍c"])("%s comes out whole whatever the cut", (text) => {
    const all = bytes(text);
    for (let cut = 0; cut <= all.length; cut++) {
      const output = new OutputText([]);
      const pieces = [all.subarray(0, cut), all.subarray(cut)].map((part) => output.push(part)?.text ?? "");
      expect(pieces.join("") + (output.end()?.text ?? "")).toBe(text);
      expect(pieces.join("")).not.toContain("\ufffd");
    }
  });

  test("a character that never becomes whole is left out", () => {
    const output = new OutputText([]);
    expect(output.push(bytes("a🦀").subarray(0, 3))?.text).toBe("a");
    expect(output.end()).toBeUndefined();
  });

  test("a byte order mark is text", () => {
    expect(new OutputText([]).push(bytes("\ufeffa"))?.text).toBe("\ufeffa");
  });

  test("log probabilities travel with their text", () => {
    const output = new OutputText(["END"]);
    expect(output.push(bytes("a"), logprob("a"))).toMatchObject({ text: "a", tokens: 1, logprobs: [{ token: "a" }] });
    expect(output.push(bytes("E"), logprob("E"))).toBeUndefined();
    const piece = output.push(bytes("x"), logprob("x"));
    expect(piece).toMatchObject({ text: "Ex", tokens: 2, logprobs: [{ token: "E" }, { token: "x" }] });
  });

  test("those of a stop text stay behind, those that began before it do not", () => {
    const output = new OutputText(["END"]);
    output.push(bytes("a E"), logprob("a E"));
    const piece = output.push(bytes("ND"), logprob("ND"));
    expect(piece).toMatchObject({ text: "", isStopped: true, logprobs: [{ token: "a E" }] });
    expect(piece?.logprobs).toHaveLength(1);
    const other = new OutputText(["ND"]);
    expect(other.push(bytes("aEND"), logprob("aEND"))).toMatchObject({ text: "aE", isStopped: true });
  });

  test("what was held back is given out at the end", () => {
    const output = new OutputText(["END"]);
    output.push(bytes("EN"), logprob("EN"));
    expect(output.end()).toMatchObject({ text: "EN", tokens: 1, logprobs: [{ token: "EN" }] });
  });
});
