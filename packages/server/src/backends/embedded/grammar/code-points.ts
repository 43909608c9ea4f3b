/** From and to, both included. */
export type CodePointRange = readonly [from: number, to: number];

const lastCodePoint = 0x10ffff;

/** Every code point that a text can hold (no lone surrogates). */
const anyCodePoint: readonly CodePointRange[] = [
  [0, 0xd7ff],
  [0xe000, lastCodePoint],
];

/** Sorted, without overlaps or neighbours. */
export function normalizeRanges(ranges: readonly CodePointRange[]): CodePointRange[] {
  const result: CodePointRange[] = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1] + 1) result[result.length - 1] = [last[0], Math.max(last[1], to)];
    else result.push([from, to]);
  }
  return result;
}

/** What is in `ranges` and not in `removed`. */
export function subtractRanges(
  ranges: readonly CodePointRange[],
  removed: readonly CodePointRange[],
): CodePointRange[] {
  let rest: CodePointRange[] = normalizeRanges(ranges);
  for (const [from, to] of removed) {
    rest = rest.flatMap(([low, high]): CodePointRange[] => {
      if (to < low || from > high) return [[low, high]];
      const kept: CodePointRange[] = [];
      if (low < from) kept.push([low, from - 1]);
      if (high > to) kept.push([to + 1, high]);
      return kept;
    });
  }
  return rest;
}

export function invertRanges(ranges: readonly CodePointRange[]): CodePointRange[] {
  return subtractRanges(anyCodePoint, ranges);
}

export function includesCodePoint(ranges: readonly CodePointRange[], codePoint: number): boolean {
  return ranges.some(([from, to]) => codePoint >= from && codePoint <= to);
}

/** @param characters each stands for itself */
export function rangesOf(characters: string): CodePointRange[] {
  return normalizeRanges(
    [...characters].map((character): CodePointRange => {
      const codePoint = character.codePointAt(0) ?? 0;
      return [codePoint, codePoint];
    }),
  );
}

export const digitRange: readonly CodePointRange[] = [[0x30, 0x39]];
