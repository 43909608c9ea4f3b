const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function isUnit(text: string): text is keyof typeof unitMs {
  return Object.hasOwn(unitMs, text);
}

/** Form of a written duration: `30m`, `1h30m`, `500ms`, or `-1` for "never". */
export const durationForm: RegExp = /^(-1|(\d+(\.\d+)?(ms|s|m|h|d))+)$/;

/**
 * Milliseconds of a duration: a number of milliseconds as it is, or a text such as `30m`, `1h30m`, `-1`.
 * @throws RangeError when the text has not the form of `durationForm`.
 */
export function durationMs(duration: number | string): number {
  if (typeof duration === "number") return duration;
  if (!durationForm.test(duration)) throw new RangeError(`Not a duration: ${duration}`);
  if (duration === "-1") return -1;
  let sum = 0;
  for (const [, amount, unit] of duration.matchAll(/([\d.]+)([a-z]+)/g)) {
    if (unit !== undefined && isUnit(unit)) sum += Number(amount) * unitMs[unit];
  }
  return Math.round(sum);
}
