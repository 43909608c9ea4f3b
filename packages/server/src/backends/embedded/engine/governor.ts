import { performance } from "node:perf_hooks";

/** Part of the wanted processor time that the compute threads must get to be worth their number. */
const worthwhileShare = 0.75;
/** Passes of this length together decide; a single longer one decides alone. */
const memoryMs = 60;
const shortestSingleMs = 1_000;
const longestSingleMs = 16_000;
/** All threads for this long without trouble: the next trouble is a new one. */
const calmMs = 5_000;

export interface GovernorReadings {
  /** Milliseconds of wall time. */
  now(): number;
  /** Milliseconds of processor time that this process has had. */
  cpu(): number;
}

const processReadings: GovernorReadings = {
  now: () => performance.now(),
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
};

/**
 * Falls back to one compute thread while other programs take the cores: llama.cpp's threads wait for each other by
 * spinning, so two on one core are many times slower than one. Tries all threads again after a second, then after
 * two, and so on up to 16 while the trouble lasts.
 */
export class Governor {
  readonly #threads: number;
  readonly #setThreads: (threads: number) => void;
  readonly #readings: GovernorReadings;
  #current: number;
  #share = 1;
  #singleMs = shortestSingleMs;
  #changedAt: number;
  #passAt = 0;
  #passCpu = 0;

  /** @param threads full number, at least 1 */
  constructor(threads: number, setThreads: (threads: number) => void, readings = processReadings) {
    this.#threads = threads;
    this.#current = threads;
    this.#setThreads = setThreads;
    this.#readings = readings;
    this.#changedAt = readings.now();
    setThreads(threads);
  }

  /** To be called right before a pass. */
  beginPass(): void {
    if (this.#threads === 1) return;
    this.#passAt = this.#readings.now();
    this.#passCpu = this.#readings.cpu();
    if (this.#current === 1 && this.#passAt - this.#changedAt > this.#singleMs) this.#use(this.#threads, this.#passAt);
  }

  /** To be called right after a pass. */
  endPass(): void {
    if (this.#current === 1) return;
    const now = this.#readings.now();
    const passMs = now - this.#passAt;
    if (passMs <= 0) return;
    const share = (this.#readings.cpu() - this.#passCpu) / (passMs * this.#current);
    this.#share += (share - this.#share) * Math.min(1, passMs / memoryMs);
    if (this.#share >= worthwhileShare) return;
    const wasCalm = now - this.#changedAt > calmMs;
    this.#singleMs = wasCalm ? shortestSingleMs : Math.min(longestSingleMs, this.#singleMs * 2);
    this.#use(1, now);
  }

  #use(threads: number, now: number): void {
    this.#current = threads;
    this.#share = 1;
    this.#changedAt = now;
    this.#setThreads(threads);
  }
}
