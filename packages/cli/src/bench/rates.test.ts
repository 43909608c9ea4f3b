import fc from "fast-check";
import { expect, test } from "vitest";
import type { MeasuredAnswer } from "./measure-answer.ts";
import { answerRate, median, promptRate, roundRate, ttftMs } from "./rates.ts";

/** An answer of even pace: `pieces` pieces of `each` tokens, the first at `firstMs`, then every `everyMs`. */
function even(firstMs: number, everyMs: number, pieces: number, each = 1): MeasuredAnswer {
  return {
    startMs: 0,
    arrivalsMs: Array.from({ length: pieces }, (_, index) => firstMs + index * everyMs),
    inputTokens: 100,
    cachedTokens: 20,
    outputTokens: pieces * each,
    isEarly: false,
  };
}

test("one answer: ttft, prompt rate without what was cached, rate between first and last piece", () => {
  const answer = even(400, 10, 101);
  expect(ttftMs(answer)).toBe(400);
  expect(promptRate(answer)).toBe(200);
  expect(answerRate(answer)).toBeCloseTo(100);
  expect(roundRate([answer])).toBeCloseTo(100);
});

test("pieces of several tokens count by the tokens of the service", () => {
  expect(roundRate([even(0, 10, 101, 3)])).toBeCloseTo(300);
  expect(answerRate(even(0, 10, 101, 3))).toBeCloseTo(300);
});

test.each([
  ["side by side", [even(0, 10, 101), even(0, 10, 101)], 200],
  ["one begins later", [even(0, 10, 101), even(500, 10, 101)], 200],
  ["one ends early: what the other does alone then does not count", [even(0, 10, 101), even(0, 10, 31)], 200],
  ["two wait for a place", [even(0, 10, 101), even(0, 10, 101), even(1010, 10, 101), even(1010, 10, 101)], 200],
])("a round, %s", (_name, answers, tokensPerSecond) => {
  expect(roundRate(answers)).toBeCloseTo(tokensPerSecond, 0);
});

test("an answer that speeds up when its neighbour has ended is not counted by its later speed", () => {
  const slowThenFast: MeasuredAnswer = {
    ...even(0, 20, 26),
    arrivalsMs: [...even(0, 20, 26).arrivalsMs, ...even(505, 5, 100).arrivalsMs],
    outputTokens: 126,
  };
  expect(roundRate([slowThenFast, even(0, 20, 26)])).toBeCloseTo(100, 0);
});

test.each([
  ["no answers", []],
  ["no pieces", [even(0, 10, 0)]],
  ["one piece", [even(5, 10, 1)]],
])("%s: no rate", (_name, answers) => {
  expect(roundRate(answers)).toBeUndefined();
});

test("an answer without pieces has no times", () => {
  const silent = even(0, 10, 0);
  expect([ttftMs(silent), promptRate(silent), answerRate(silent)]).toEqual([undefined, undefined, undefined]);
});

test("streams of equal pace give the pace times their number", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 16 }), fc.integer({ min: 1, max: 50 }), (streams, everyMs) => {
      const rate = roundRate(Array.from({ length: streams }, () => even(100, everyMs, 50)));
      expect(rate).toBeCloseTo((streams * 1000) / everyMs, 6);
    }),
  );
});

test.each([
  [[], undefined],
  [[undefined], undefined],
  [[3], 3],
  [[4, 1], 2.5],
  [[9, undefined, 1, 5], 5],
])("median of %j", (values, middle) => {
  expect(median(values)).toBe(middle);
});
