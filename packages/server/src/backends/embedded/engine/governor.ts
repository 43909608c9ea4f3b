import { cpus } from "node:os";
import { performance } from "node:perf_hooks";

/**
 * Part of the wanted processor time that all threads get on a quiet machine, where the service and a client take a tenth
 * of a core at least; with less, fewer threads may be faster.
 */
const quietShare = 0.85;
/**
 * Part of each further core that must be idle before a thread is tried on it. The service and its clients take a part
 * of it too, so it is low; the trial decides.
 */
const idleShare = 0.5;
/** Milliseconds of passes in which readings fade. */
const memoryMs = 300;
const trialMs = 150;
/** Milliseconds over which cores must have been idle; short, so that what ran before a burst of work does not count. */
const idleCheckMs = 100;
const shortestIntervalMs = 1_000;
const longestIntervalMs = 16_000;
/** How much faster the other number of threads must be. */
const worthwhileGain = 1.05;
/** Tokens that take as long as what a pass costs by itself. */
const passCostTokens = 1.5;

/** All in milliseconds since some beginning. */
export interface GovernorReadings {
  now(): number;
  /** Processor time that this process has had. */
  cpu(): number;
  /** Time that the machine's cores were idle, summed up. */
  idle(): number;
  /** What `now` and `idle` told before the model was loaded. */
  readonly beginning: { readonly now: number; readonly idle: number };
}

const now = () => performance.now();
const idle = () => cpus().reduce((sum, core) => sum + core.times.idle, 0);
const processReadings: GovernorReadings = {
  now,
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  idle,
  beginning: { now: now(), idle: idle() },
};

/**
 * Halves the compute threads while other programs take the cores. llama.cpp's threads wait for each other by spinning,
 * so two of them on one core are tens of times slower than one, and a single pass may take seconds.
 * - When all threads do not get their cores, half of them are tried for 150 ms or a pass, and the faster number stays.
 * - From half to all it goes only when the cores for it were idle over the last 100 ms or more.
 * A trial that changes nothing doubles the time to the next, up to 16 s.
 */
export class Governor {
  readonly #all: number;
  readonly #half: number;
  readonly #setThreads: (threads: number) => void;
  readonly #readings: GovernorReadings;
  #current: number;
  #share = 1;
  /** Tokens a millisecond with the present number of threads. */
  #rate = 0;
  #trial: { tokens: number; ms: number } | undefined;
  #nextTrialAt: number;
  #intervalMs = shortestIntervalMs;
  #passAt = 0;
  #passCpu = 0;
  #idleAt: number;
  #idleMs: number;

  /** @param threads full number, at least 1 */
  constructor(threads: number, setThreads: (threads: number) => void, readings = processReadings) {
    this.#all = threads;
    this.#half = Math.max(1, Math.floor(threads / 2));
    this.#setThreads = setThreads;
    this.#readings = readings;
    this.#idleAt = readings.beginning.now;
    this.#idleMs = readings.beginning.idle;
    this.#nextTrialAt = this.#idleAt;
    this.#current = threads;
    this.#use(threads === 1 || this.#areCoresIdle(readings.now()) ? threads : this.#half);
  }

  /** To be called right before a pass. */
  beginPass(): void {
    this.#passAt = this.#readings.now();
    this.#passCpu = this.#readings.cpu();
  }

  /** To be called right after a pass of so many tokens. */
  endPass(tokens: number): void {
    const now = this.#readings.now();
    const ms = now - this.#passAt;
    if (this.#half === this.#all || ms <= 0) return;
    const work = tokens + passCostTokens;
    if (this.#trial !== undefined) {
      this.#trial.tokens += work;
      this.#trial.ms += ms;
      if (this.#trial.ms >= trialMs) this.#conclude(this.#trial.tokens / this.#trial.ms, now);
      return;
    }
    const weight = Math.min(1, ms / memoryMs);
    this.#rate = this.#rate === 0 ? work / ms : this.#rate + (work / ms - this.#rate) * weight;
    this.#share += ((this.#readings.cpu() - this.#passCpu) / (ms * this.#current) - this.#share) * weight;
    if (now < this.#nextTrialAt) return;
    if (this.#current === this.#all ? this.#share < quietShare : this.#areCoresIdle(now)) this.#begin();
    else if (this.#current === this.#half) this.#nextTrialAt = now + idleCheckMs;
  }

  #begin(): void {
    this.#trial = { tokens: 0, ms: 0 };
    this.#use(this.#other);
  }

  #conclude(trialRate: number, now: number): void {
    this.#trial = undefined;
    if (trialRate > this.#rate * worthwhileGain) {
      this.#rate = trialRate;
      this.#intervalMs = shortestIntervalMs;
    } else {
      this.#use(this.#other);
      this.#intervalMs = Math.min(longestIntervalMs, this.#intervalMs * 2);
    }
    this.#share = 1;
    this.#nextTrialAt = now + this.#intervalMs;
    this.#areCoresIdle(now);
  }

  /** Since the last call. */
  #areCoresIdle(now: number): boolean {
    const idleMs = this.#readings.idle();
    const idleCores = (idleMs - this.#idleMs) / Math.max(1, now - this.#idleAt);
    this.#idleMs = idleMs;
    this.#idleAt = now;
    return idleCores >= (this.#all - this.#half) * idleShare;
  }

  get #other(): number {
    return this.#current === this.#all ? this.#half : this.#all;
  }

  #use(threads: number): void {
    this.#current = threads;
    this.#setThreads(threads);
  }
}
