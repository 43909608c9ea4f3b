import { expect, test } from "vitest";
import { Governor } from "./governor.ts";

/** Drives a governor of two threads through passes of so many milliseconds, of which it gets a share. */
function drive() {
  let now = 0;
  let cpu = 0;
  const used: number[] = [];
  const governor = new Governor(2, (threads) => used.push(threads), { now: () => now, cpu: () => cpu });
  return {
    used,
    pass(ms: number, share: number) {
      governor.beginPass();
      now += ms;
      cpu += ms * share * (used.at(-1) ?? 2);
      governor.endPass();
    },
  };
}

test("stays at all threads while they get their cores", () => {
  const { used, pass } = drive();
  for (let count = 0; count < 100; count++) pass(8, 0.97);
  expect(used).toEqual([2]);
});

test("falls back when they do not, and tries again after longer and longer", () => {
  const { used, pass } = drive();
  for (let count = 0; count < 100; count++) pass(100, 0.5);
  // 10 s of trouble: single for 2 s, then for 4 s.
  expect(used).toEqual([2, 1, 2, 1, 2, 1]);
});

test("one short hiccup changes nothing", () => {
  const { used, pass } = drive();
  for (const share of [0.95, 0.95, 0.3, 0.95, 0.95]) pass(8, share);
  expect(used).toEqual([2]);
});
