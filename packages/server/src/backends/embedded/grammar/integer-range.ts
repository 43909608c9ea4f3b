import { digitRange } from "./code-points.ts";
import { characters, choice, type Expression, nothing, repeat, sequence, text } from "./expression.ts";

const digit = characters(digitRange);

/** Largest integer that every JSON reader keeps exact. */
export const largestInteger = BigInt(Number.MAX_SAFE_INTEGER);

/** Exactly the integers from `min` to `max`, written without leading zeros. Undefined when there is none. */
export function integerBetween(min: bigint, max: bigint): Expression | undefined {
  const options: Expression[] = [];
  if (min < 0n) {
    const negative = magnitudeBetween(max < 0n ? -max : 1n, -min);
    if (negative !== undefined) options.push(sequence(text("-"), negative));
  }
  if (max >= 0n) {
    const positive = magnitudeBetween(min > 0n ? min : 0n, max);
    if (positive !== undefined) options.push(positive);
  }
  return options.length === 0 ? undefined : choice(...options);
}

/** @param min,max not negative */
export function magnitudeBetween(min: bigint, max: bigint): Expression | undefined {
  if (min > max) return undefined;
  const [low, high] = [min.toString(), max.toString()];
  if (low.length === high.length) return digitsBetween(low, high);
  const options = [digitsBetween(low, "9".repeat(low.length))];
  // Every number of a length in between is in; the first digit is no zero.
  if (high.length - low.length > 1) {
    options.push(sequence(digitIn(1, 9), repeat(digit, low.length, high.length - 2)));
  }
  options.push(digitsBetween(`1${"0".repeat(high.length - 1)}`, high));
  return choice(...options);
}

/** Numbers of one length, digit by digit. */
function digitsBetween(low: string, high: string): Expression {
  if (low === "") return nothing;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return repeat(digit, low.length, low.length);
  const [lowFirst, lowRest] = [Number(low.charAt(0)), low.slice(1)];
  const [highFirst, highRest] = [Number(high.charAt(0)), high.slice(1)];
  if (lowFirst === highFirst) return sequence(text(low.charAt(0)), digitsBetween(lowRest, highRest));
  const options: Expression[] = [];
  const lowIsFull = /^0*$/.test(lowRest);
  const highIsFull = /^9*$/.test(highRest);
  if (!lowIsFull)
    options.push(sequence(digitIn(lowFirst, lowFirst), digitsBetween(lowRest, "9".repeat(lowRest.length))));
  const middle = { from: lowIsFull ? lowFirst : lowFirst + 1, to: highIsFull ? highFirst : highFirst - 1 };
  if (middle.from <= middle.to) {
    options.push(sequence(digitIn(middle.from, middle.to), repeat(digit, lowRest.length, lowRest.length)));
  }
  if (!highIsFull)
    options.push(sequence(digitIn(highFirst, highFirst), digitsBetween("0".repeat(highRest.length), highRest)));
  return choice(...options);
}

/** One digit from `from` to `to`. */
export function digitIn(from: number, to: number): Expression {
  return from === to ? text(String(from)) : characters([[0x30 + from, 0x30 + to]]);
}
