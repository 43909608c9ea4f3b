import type { Clock } from "../ports/clock.ts";

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, call) {
    // Longer delays overflow a 32-bit timer and would fire at once.
    const timer: unknown = setTimeout(call, Math.min(delayMs, 0x7fff_ffff));
    // Where timers keep a process alive, this one must not.
    if (typeof timer === "object" && timer !== null && "unref" in timer && typeof timer.unref === "function") {
      timer.unref();
    }
    return () => clearTimeout(timer as number);
  },
};
