import { expect, test } from "vitest";
import { backoffMs } from "./backoff.ts";

test.each([
  [0, 1, 0],
  [1, 0, 125],
  [1, 1, 250],
  [2, 1, 500],
  [5, 1, 4_000],
  [8, 1, 30_000],
  [100, 0, 15_000],
])("%i failures, random %d: %i ms", (failures, random, expected) => {
  expect(backoffMs(failures, random)).toBe(expected);
});
