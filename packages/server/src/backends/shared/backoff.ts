const firstDelayMs = 250;
const longestDelayMs = 30_000;

/**
 * Time to wait before the next start after so many failures in a row: doubles from 250 ms to 30 s, half of it jittered.
 * @param failures 0: no wait
 * @param random 0 … 1
 */
export function backoffMs(failures: number, random: number): number {
  if (failures <= 0) return 0;
  const full = Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
  return Math.round(full * (0.5 + 0.5 * random));
}
