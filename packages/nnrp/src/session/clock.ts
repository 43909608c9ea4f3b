/** Time, so that tests can drive it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls once after `delayMs` or earlier (callers look again); the returned function cancels it. Keeps no process alive. */
  after(delayMs: number, call: () => void): () => void;
  /** Calls soon, after what is already waiting to run: packets written until then go out together. */
  soon(call: () => void): void;
}

/** The longest delay that platforms' timers hold. */
const longestDelayMs = 2 ** 31 - 1;

/** The platform's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, call) {
    const timer: unknown = setTimeout(call, Math.min(Math.max(delayMs, 0), longestDelayMs));
    if (typeof timer === "object" && timer !== null && "unref" in timer && typeof timer.unref === "function") {
      timer.unref();
    }
    return () => clearTimeout(timer as number);
  },
  // A page's function must not be called as a method of this object.
  soon: typeof setImmediate === "function" ? (call) => void setImmediate(call) : (call) => queueMicrotask(call),
};
