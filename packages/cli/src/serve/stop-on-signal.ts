import { exitCodes } from "../exit-codes.ts";
import type { StopSignal, Surroundings } from "../surroundings.ts";

/** Signals nearer than this, in milliseconds, are one: a terminal and npm may both pass on the same Ctrl-C. */
const sameSignalMs = 300;

/**
 * A listener whose first signal aborts `stop`, and whose second one, when it is another, ends the process at once.
 * @param now milliseconds of a clock.
 */
export function stopOnSignal(
  stop: AbortController,
  around: Pick<Surroundings, "exitNow">,
  now: () => number = Date.now,
): (signal: StopSignal) => void {
  let firstAt: number | undefined;
  return (signal) => {
    if (firstAt === undefined) {
      firstAt = now();
      stop.abort();
    } else if (now() - firstAt > sameSignalMs) {
      around.exitNow(signal === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated);
    }
  };
}
