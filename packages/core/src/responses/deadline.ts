import type { Clock } from "../ports/clock.ts";
import { CoreError } from "../problems/core-error.ts";

/** What has no time left never reaches a backend (LMSP §5). @throws CoreError deadline-exceeded */
export function refusePastDeadline(deadlineMs: number | undefined, nowMs: number): void {
  if (deadlineMs === undefined || deadlineMs > nowMs) return;
  throw new CoreError("deadline-exceeded", "The deadline had passed before the request was accepted.");
}

/** Calls once when the deadline passes; the returned function ends the watch. Absent: never. */
export function watchDeadline(clock: Clock, deadlineMs: number | undefined, onPassed: () => void): () => void {
  if (deadlineMs === undefined) return () => {};
  let stop = (): void => {};
  const wait = (): void => {
    const leftMs = deadlineMs - clock.now();
    if (leftMs <= 0) onPassed();
    else stop = clock.after(leftMs, wait);
  };
  stop = clock.after(Math.max(0, deadlineMs - clock.now()), wait);
  return () => stop();
}
