/**
 * Fuzzes the codec: `npm run fuzz -- [INPUTS] [SEED]`. Prints a line every million inputs, with the heap and the slowest
 * input, and ends with an error at the first input that crashes, is encoded otherwise than it was read, or hangs.
 */
import { checkInput, makeInput, randomNumbers } from "../src/codec/testing/fuzz.ts";

const inputs = Number(process.argv[2] ?? 10_000_000);
const seed = Number(process.argv[3] ?? Date.now() % 0xffff_ffff);
const slowestAllowedMs = 1000;
const million = 1_000_000;

// Most inputs end in an error; its stack is only of interest when it is thrown on.
Error.stackTraceLimit = 0;
function time(input: Uint8Array, splitAt: number): number {
  const before = performance.now();
  checkInput(input, splitAt);
  return performance.now() - before;
}

const next = randomNumbers(seed);
const startedAt = performance.now();
let packets = 0;
let slowestMs = 0;
process.stdout.write(`seed ${seed}\n`);
for (let run = 1; run <= inputs; run += 1) {
  const input = makeInput(next);
  const splitAt = input.byteLength === 0 ? 0 : next() % input.byteLength;
  try {
    const before = performance.now();
    packets += checkInput(input, splitAt);
    let took = performance.now() - before;
    // A busy machine makes an input slow once, a decoder that hangs makes it slow again.
    if (took > slowestMs) took = Math.min(took, time(input, splitAt), time(input, splitAt));
    slowestMs = Math.max(slowestMs, took);
    if (slowestMs > slowestAllowedMs) throw new Error(`input ${run} takes ${slowestMs} ms`);
  } catch (error) {
    process.stdout.write(`input ${run}: ${Buffer.from(input).toString("hex")}\n`);
    throw error;
  }
  if (run % million === 0 || run === inputs) {
    const heapMiB = Math.round(process.memoryUsage().heapUsed / 2 ** 20);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    process.stdout.write(
      `${run} inputs, ${packets} packets, ${seconds} s, heap ${heapMiB} MiB, slowest ${slowestMs.toFixed(1)} ms\n`,
    );
    slowestMs = 0;
  }
}
