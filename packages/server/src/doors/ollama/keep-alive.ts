import { requestLimits } from "@plenum/core";
import { OllamaRefusal } from "./refusal.ts";

/** Units of a Go duration in milliseconds; the micro sign exists twice in Unicode. */
const unitMs: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-6],
  ["us", 1e-3],
  ["\u00b5s", 1e-3],
  ["\u03bcs", 1e-3],
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

/**
 * Milliseconds of `keep_alive`: a number of seconds, or a Go duration such as `5m` or `1h30m`. Beyond Go, a text may be
 * a bare number of seconds, because clients send `"-1"`.
 * @returns -1 for every negative or very long one (for ever), 0: not at all; undefined when absent.
 * @throws OllamaRefusal
 */
export function toKeepAliveMs(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number") return settle(value * 1_000);
  if (typeof value === "string") return settle(durationMs(value));
  throw new OllamaRefusal(400, `'keep_alive' must be a duration such as "5m", or a number of seconds.`);
}

function settle(ms: number): number {
  return ms < 0 || ms > requestLimits.keepAliveMs ? -1 : Math.round(ms);
}

function durationMs(written: string): number {
  if (/^[-+]?\d+(\.\d+)?$/.test(written)) return Number(written) * 1_000;
  const form = /^([-+]?)((?:(?:\d+\.?\d*|\.\d+)[^\d.]+)+)$/.exec(written);
  if (form === null) throw new OllamaRefusal(400, `time: invalid duration ${JSON.stringify(written)}`);
  const [, sign, amounts = ""] = form;
  let sum = 0;
  for (const [, amount, unit = ""] of amounts.matchAll(/([\d.]+)([^\d.]+)/g)) {
    const factor = unitMs.get(unit);
    if (factor === undefined) {
      const place = `${JSON.stringify(unit)} in duration ${JSON.stringify(written)}`;
      throw new OllamaRefusal(400, `time: unknown unit ${place}`);
    }
    sum += Number(amount) * factor;
  }
  return sign === "-" ? -sum : sum;
}
