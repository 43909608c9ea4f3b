export function median(numbers: readonly number[]): number {
  return percentile(numbers, 0.5);
}

/** @param part 0 … 1; the nearest rank, so always one of the numbers */
export function percentile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
