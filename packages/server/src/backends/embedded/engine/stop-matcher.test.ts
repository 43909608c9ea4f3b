import { describe, expect, test } from "vitest";
import { StopMatcher } from "./stop-matcher.ts";

function run(stops: readonly string[], pieces: readonly string[]): { text: string; hit: string | undefined } {
  const matcher = new StopMatcher(stops);
  let text = "";
  for (const piece of pieces) {
    const step = matcher.push(piece);
    text += step.text;
    if (step.hit !== undefined) return { text, hit: step.hit };
  }
  return { text: text + matcher.end(), hit: undefined };
}

describe("StopMatcher", () => {
  test.each([
    ["no stops", [], ["ab", "c"], "abc", undefined],
    ["inside one piece", ["lo"], ["hello world"], "hel", "lo"],
    ["over pieces", ["lo w"], ["hel", "lo", " ", "world"], "hel", "lo w"],
    ["a false beginning is given out", ["abcd"], ["xab", "ce"], "xabce", undefined],
    ["a beginning at the end is given out", ["abcd"], ["xabc"], "xabc", undefined],
    ["the earliest of two", ["world", "lo"], ["hello world"], "hel", "lo"],
    ["a repeated beginning", ["aab"], ["a", "a", "a", "b"], "a", "aab"],
    ["at the very start", ["h"], ["hello"], "", "h"],
    ["longer than all text", ["hello world!"], ["hello"], "hello", undefined],
  ])("%s", (_name, stops, pieces, text, hit) => {
    expect(run(stops, pieces)).toEqual({ text, hit });
  });

  test("holds back no more than what may begin a stop text", () => {
    const matcher = new StopMatcher(["STOP"]);
    expect(matcher.push("some text S")).toEqual({ text: "some text " });
    expect(matcher.push("o")).toEqual({ text: "So" });
  });
});
