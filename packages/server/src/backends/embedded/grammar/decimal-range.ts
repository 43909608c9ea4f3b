import { digitRange } from "./code-points.ts";
import { characters, choice, type Expression, nothing, optional, repeat, sequence, text } from "./expression.ts";
import { digitIn, magnitudeBetween } from "./integer-range.ts";

const digit = characters(digitRange);
/** Digits after the point when no bound says otherwise. */
const fractionDigits = 15;
/** Decimals of up to this many digits are all different as doubles, so `>` on the text is `>` on the number. */
const exactDigits = 15;
/** Stands for "no upper bound". */
const highest: DecimalBound = { whole: 999_999_999_999_999n, fraction: "", exclusive: false };

/** A bound that is not negative, as decimal text. */
interface DecimalBound {
  readonly whole: bigint;
  /** Digits after the point, without zeros at the end. */
  readonly fraction: string;
  readonly exclusive: boolean;
}

export interface DecimalLimits {
  readonly min?: { readonly value: number; readonly exclusive: boolean };
  readonly max?: { readonly value: number; readonly exclusive: boolean };
}

/** Exactly the decimals within the limits, without exponents. Undefined when there is none. */
export function decimalBetween({ min, max }: DecimalLimits): Expression | undefined {
  const options: Expression[] = [];
  if (min === undefined || min.value < 0) {
    const nearest = max !== undefined && max.value < 0 ? toBound(-max.value, max.exclusive) : toBound(0, true);
    const farthest = min === undefined ? highest : toBound(-min.value, min.exclusive);
    const negative = magnitude(nearest, farthest);
    if (negative !== undefined) options.push(sequence(text("-"), negative));
  }
  if (max === undefined || max.value >= 0) {
    const nearest = min !== undefined && min.value > 0 ? toBound(min.value, min.exclusive) : toBound(0, isZero(min));
    const positive = magnitude(nearest, max === undefined ? highest : toBound(max.value, max.exclusive));
    if (positive !== undefined) options.push(positive);
  }
  return options.length === 0 ? undefined : choice(...options);
}

/** Only numbers that JavaScript writes without exponent can be bounds. */
export function isPlainDecimal(value: number): boolean {
  return Number.isFinite(value) && !String(value).includes("e") && Math.abs(value) < 1e15;
}

function isZero(bound: DecimalLimits["min"]): boolean {
  return bound !== undefined && bound.value === 0 && bound.exclusive;
}

function toBound(value: number, exclusive: boolean): DecimalBound {
  const [whole = "0", fraction = ""] = String(Math.abs(value)).split(".");
  return { whole: BigInt(whole), fraction, exclusive };
}

function magnitude(low: DecimalBound, high: DecimalBound): Expression | undefined {
  if (low.whole > high.whole) return undefined;
  if (low.whole === high.whole) return wholeWith(low.whole, fraction(low, high, low.whole));
  const between = magnitudeBetween(low.whole + 1n, high.whole - 1n);
  const options = [
    wholeWith(low.whole, fraction(low, undefined, low.whole)),
    between === undefined
      ? undefined
      : sequence(between, optional(sequence(text("."), repeat(digit, 1, fractionDigits)))),
    wholeWith(high.whole, fraction(undefined, high, high.whole)),
  ].filter((each) => each !== undefined);
  return options.length === 0 ? undefined : choice(...options);
}

function wholeWith(whole: bigint, rest: Expression | undefined): Expression | undefined {
  return rest === undefined ? undefined : sequence(text(whole.toString()), rest);
}

/** What may follow the digits before the point: nothing, or a point and digits. */
function fraction(
  low: DecimalBound | undefined,
  high: DecimalBound | undefined,
  whole: bigint,
): Expression | undefined {
  const places = whole === 0n ? exactDigits : Math.max(1, exactDigits - whole.toString().length);
  const interval: FractionInterval = {
    ...(low === undefined ? {} : { low: { digits: low.fraction, exclusive: low.exclusive } }),
    ...(high === undefined ? {} : { high: { digits: high.fraction, exclusive: high.exclusive } }),
  };
  const options: Expression[] = zeroFits(interval) ? [nothing] : [];
  const digits = nextDigits(interval, places);
  if (digits !== undefined) options.push(sequence(text("."), digits));
  return options.length === 0 ? undefined : choice(...options);
}

interface FractionBound {
  readonly digits: string;
  readonly exclusive: boolean;
}

interface FractionInterval {
  readonly low?: FractionBound;
  readonly high?: FractionBound;
}

/** Whether the digits may end here, which stands for zeros. */
function zeroFits({ low, high }: FractionInterval): boolean {
  const aboveLow = low === undefined || (low.digits === "" && !low.exclusive);
  return aboveLow && (high === undefined || high.digits !== "" || !high.exclusive);
}

/** At least one more digit of a fraction inside the interval. Undefined when none fits in `places`. */
function nextDigits({ low, high }: FractionInterval, places: number): Expression | undefined {
  const lowBound = low?.digits === "" && !low.exclusive ? undefined : low;
  if (places === 0) return undefined;
  if (lowBound === undefined && high === undefined) return repeat(digit, 1, places);
  if (lowBound === undefined && high?.digits === "") return high.exclusive ? undefined : repeat(text("0"), 1, places);
  const from = Number(lowBound?.digits.charAt(0) || "0");
  const to = high === undefined ? 9 : Number(high.digits.charAt(0) || "0");
  const options: Expression[] = [];
  const add = (first: Expression, rest: FractionInterval): void => {
    const more = nextDigits(rest, places - 1);
    const ends = zeroFits(rest);
    if (more === undefined && !ends) return;
    options.push(sequence(first, more === undefined ? nothing : ends ? optional(more) : more));
  };
  const restOf = (bound: FractionBound): FractionBound => ({
    digits: bound.digits.slice(1),
    exclusive: bound.exclusive,
  });
  const isLow = (value: number): boolean => lowBound !== undefined && value === from;
  const isHigh = (value: number): boolean => high !== undefined && value === to;
  for (let value = from; value <= to; value += 1) {
    if (isLow(value) || isHigh(value)) {
      add(digitIn(value, value), {
        ...(lowBound !== undefined && isLow(value) ? { low: restOf(lowBound) } : {}),
        ...(high !== undefined && isHigh(value) ? { high: restOf(high) } : {}),
      });
    } else {
      const last = isHigh(to) ? to - 1 : to;
      add(digitIn(value, last), {});
      value = last;
    }
  }
  return options.length === 0 ? undefined : choice(...options);
}
