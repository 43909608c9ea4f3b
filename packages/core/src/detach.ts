import type { Clock } from "./ports/clock.ts";

/** Lets a promise run on by itself; a rejection is told instead of ending the process. */
export function detach(promise: Promise<unknown>, onFault: ((error: unknown) => void) | undefined): void {
  promise.catch((error: unknown) => onFault?.(error));
}

/** Waits for a promise, at most so many milliseconds. */
export async function within(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<void> {
  let cancel = (): void => {};
  const limit = new Promise<void>((resolve) => {
    cancel = clock.after(limitMs, resolve);
  });
  await Promise.race([promise, limit]);
  cancel();
}
