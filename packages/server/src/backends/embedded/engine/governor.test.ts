import { expect, test } from "vitest";
import { Governor } from "./governor.ts";

interface Machine {
  /** Milliseconds of a pass. */
  readonly ms: number;
  /** Part of the wanted processor time that the threads get. */
  readonly share: number;
  /** Cores that nobody uses, beside those of this process. */
  readonly idle: number;
}

/** Drives a governor of two threads on a machine that depends on their number and the time. */
function drive(machine: (threads: number, now: number) => Machine) {
  let now = 1_000;
  let cpu = 0;
  let idle = machine(1, 0).idle * now;
  const used: number[] = [];
  const readings = { now: () => now, cpu: () => cpu, idle: () => idle, beginning: { now: 0, idle: 0 } };
  const governor = new Governor(2, (threads) => used.push(threads), readings);
  return {
    used,
    /** Time without a pass, in which others have the cores. */
    rest(ms: number) {
      now += ms;
    },
    run(ms: number, tokens = 1) {
      for (const end = now + ms; now < end; ) {
        const threads = used.at(-1) ?? 2;
        const pass = machine(threads, now);
        governor.beginPass();
        now += pass.ms;
        cpu += pass.ms * pass.share * threads;
        idle += pass.ms * pass.idle;
        governor.endPass(tokens);
      }
    },
  };
}

const quiet = (threads: number): Machine =>
  threads === 2 ? { ms: 8, share: 0.97, idle: 0 } : { ms: 13, share: 0.99, idle: 0.95 };
const busy = (threads: number): Machine =>
  threads === 2 ? { ms: 800, share: 0.8, idle: 0 } : { ms: 20, share: 0.8, idle: 0.1 };

test("begins with all threads on a quiet machine and stays there", () => {
  const { used, run } = drive(quiet);
  run(60_000);
  expect(used).toEqual([2]);
});

test("begins with one on a busy machine and stays there", () => {
  const { used, run } = drive(busy);
  run(60_000);
  expect(used).toEqual([1]);
});

test("follows the machine both ways", () => {
  const { used, run } = drive((threads, now) => (now > 5_000 && now < 20_000 ? busy(threads) : quiet(threads)));
  run(4_000);
  expect(used).toEqual([2]);
  run(10_000);
  expect(used).toEqual([2, 1]);
  run(30_000);
  expect(used).toEqual([2, 1, 2]);
});

test("returns to all threads though the service takes a quarter of the core that is left", () => {
  const served = (threads: number): Machine => ({ ...quiet(threads), idle: threads === 2 ? 0 : 0.75 });
  const { used, run } = drive((threads, now) => (now < 5_000 ? busy(threads) : served(threads)));
  run(10_000);
  expect(used).toEqual([1, 2]);
});

test("begins a burst of work with all threads soon, whoever had the cores before it", () => {
  const { used, run, rest } = drive((threads, now) => (now < 30_000 ? busy(threads) : quiet(threads)));
  run(5_000);
  rest(25_000);
  run(500);
  expect(used).toEqual([1, 2]);
});

test("stays at all threads on a busy machine where they are still faster", () => {
  const { used, run } = drive((threads) => ({ ...quiet(threads), share: 0.8, idle: 0.95 }));
  run(30_000);
  expect(used.slice(0, 3)).toEqual([2, 1, 2]);
  expect(used.at(-1)).toBe(2);
  expect(used.length).toBeLessThan(14);
});

test("tries no fewer threads for the little that the service and a client take", () => {
  const { used, run } = drive((threads) => ({ ms: threads === 2 ? 14 : 23, share: 0.88, idle: 0.5 }));
  run(30_000);
  expect(used).toEqual([2]);
});
