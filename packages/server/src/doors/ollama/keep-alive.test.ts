import { expect, test } from "vitest";
import { toKeepAliveMs } from "./keep-alive.ts";

test.each([
  [undefined, undefined],
  [null, undefined],
  ["-1", -1],
  [-1, -1],
  ["-1m", -1],
  ["0", 0],
  [0, 0],
  ["0s", 0],
  ["5m", 300_000],
  [300, 300_000],
  ["300", 300_000],
  ["1h30m", 5_400_000],
  ["1.5s", 1_500],
  [".5s", 500],
  [0.25, 250],
  ["250ms", 250],
  ["1500us", 2],
  ["1500\u00b5s", 2],
  ["1500\u03bcs", 2],
  ["+2s", 2_000],
  [1e300, -1],
])("keep_alive %j is %j ms", (written, ms) => {
  expect(toKeepAliveMs(written)).toBe(ms);
});

test.each([
  ["banana", 'time: invalid duration "banana"'],
  ["", 'time: invalid duration ""'],
  ["5x", 'time: unknown unit "x" in duration "5x"'],
  ["1h 30m", 'time: unknown unit "h " in duration "1h 30m"'],
  ["1..5s", 'time: invalid duration "1..5s"'],
  [true, `'keep_alive' must be a duration such as "5m", or a number of seconds.`],
  [["5m"], `'keep_alive' must be a duration such as "5m", or a number of seconds.`],
])("keep_alive %j is refused", (written, text) => {
  expect(() => toKeepAliveMs(written)).toThrow(expect.objectContaining({ message: text, status: 400 }));
});
