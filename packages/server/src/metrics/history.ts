import type { Clock, Core, CoreError, EmbeddingEnd, Observer, Response } from "@plenum/core";

/** Milliseconds of the finest step. */
export const finestStepMs = 10_000;
/** How far back it reaches. */
export const longestWindowMs = 3_600_000;
/** Measurements of one kind that a step of a series keeps; of more it keeps a fair sample. */
const samplesPerStep = 128;
/** Pairs of model and door; of more, the one that was quiet for longest is forgotten. */
const mostSeries = 128;

/** What one step of one model and door held. */
interface Step {
  /** Milliseconds since the epoch at which it begins. */
  readonly at: number;
  requests: number;
  outputTokens: number;
  readonly errors: Map<string, number>;
  readonly ttftMs: Sample;
  readonly interTokenMs: Sample;
}

interface Series {
  readonly model: string;
  readonly door: string;
  /** In order of time; a step in which nothing happened is not there. */
  readonly steps: Step[];
}

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
}

export interface HistoryPoint {
  /** Milliseconds since the epoch at which it begins. */
  readonly at: number;
  readonly requests: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly ttftMs: Percentiles | undefined;
  readonly interTokenMs: Percentiles | undefined;
  readonly outputTokens: number;
  readonly tokensPerSecond: number;
}

export interface HistoryView {
  readonly stepMs: number;
  readonly from: number;
  readonly to: number;
  readonly series: readonly {
    readonly model: string;
    readonly door: string;
    readonly points: readonly HistoryPoint[];
  }[];
  readonly queue: readonly { readonly at: number; readonly queued: number; readonly running: number }[];
}

/** The service's own short history, so that a page can draw it without a Prometheus (LMSP §8). Bounded, in memory. */
export class MetricsHistory {
  readonly #clock: Clock;
  readonly #series = new Map<string, Series>();
  /** Longest queue and most running of each step. */
  readonly #queue: { readonly at: number; queued: number; running: number }[] = [];
  readonly #listeners = new Set<() => void>();
  #stopTimer: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly observer: Observer = {
    responseEnded: (response, error) => this.#noteResponse(response, error),
    embeddingEnded: (end) => this.#noteEmbedding(end),
  };

  /** Looks at the queue once a second, and tells of each step that ends. */
  watch({ scheduler }: Pick<Core, "scheduler">): void {
    const look = (): void => {
      const at = this.#now();
      const last = this.#queue.at(-1);
      if (last?.at === at) {
        last.queued = Math.max(last.queued, scheduler.queued);
        last.running = Math.max(last.running, scheduler.running);
      } else {
        this.#queue.push({ at, queued: scheduler.queued, running: scheduler.running });
        while ((this.#queue[0]?.at ?? at) <= at - longestWindowMs) this.#queue.shift();
        for (const listener of [...this.#listeners]) listener();
      }
      this.#stopTimer = this.#clock.after(1_000, look);
    };
    look();
  }

  /** Calls the listener at the end of each step; the returned function ends that. */
  onStep(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stopTimer();
  }

  /** @param windowMs how far back, up to an hour. @param stepMs a multiple of the finest step */
  view(windowMs: number, stepMs: number): HistoryView {
    const to = this.#clock.now();
    const from = Math.floor((to - windowMs) / stepMs) * stepMs;
    const series = [...this.#series.values()].map(({ model, door, steps }) => ({
      model,
      door,
      points: mergeSteps(steps, from, stepMs),
    }));
    const queue: { at: number; queued: number; running: number }[] = [];
    for (const { at, queued, running } of this.#queue) {
      if (at < from) continue;
      const step = Math.floor(at / stepMs) * stepMs;
      const last = queue.at(-1);
      if (last?.at !== step) queue.push({ at: step, queued, running });
      else {
        last.queued = Math.max(last.queued, queued);
        last.running = Math.max(last.running, running);
      }
    }
    return { stepMs, from, to, series: series.filter(({ points }) => points.length > 0), queue };
  }

  #noteResponse({ model, door, usage, timings }: Response, error: CoreError | undefined): void {
    const step = this.#stepOf(model, door);
    step.requests += 1;
    if (error !== undefined) step.errors.set(error.code, (step.errors.get(error.code) ?? 0) + 1);
    const { firstTokenMs, totalMs } = timings;
    if (firstTokenMs !== undefined) step.ttftMs.add(firstTokenMs);
    const outputTokens = usage?.outputTokens ?? 0;
    step.outputTokens += outputTokens;
    if (outputTokens > 1 && firstTokenMs !== undefined && totalMs !== undefined) {
      step.interTokenMs.add((totalMs - firstTokenMs) / (outputTokens - 1));
    }
  }

  #noteEmbedding({ model, door, error }: EmbeddingEnd): void {
    const step = this.#stepOf(model, door);
    step.requests += 1;
    if (error !== undefined) step.errors.set(error.code, (step.errors.get(error.code) ?? 0) + 1);
  }

  #stepOf(model: string, door: string): Step {
    const key = `${door} ${model}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { model, door, steps: [] };
      if (this.#series.size >= mostSeries) this.#forgetQuietest();
      this.#series.set(key, series);
    }
    const at = this.#now();
    const { steps } = series;
    const last = steps.at(-1);
    if (last?.at === at) return last;
    const step = {
      at,
      requests: 0,
      outputTokens: 0,
      errors: new Map(),
      ttftMs: new Sample(),
      interTokenMs: new Sample(),
    };
    steps.push(step);
    while ((steps[0]?.at ?? at) <= at - longestWindowMs) steps.shift();
    return step;
  }

  #forgetQuietest(): void {
    let quietest: { readonly key: string; readonly at: number } | undefined;
    for (const [key, { steps }] of this.#series) {
      const at = steps.at(-1)?.at ?? 0;
      if (quietest === undefined || at < quietest.at) quietest = { key, at };
    }
    if (quietest !== undefined) this.#series.delete(quietest.key);
  }

  #now(): number {
    return Math.floor(this.#clock.now() / finestStepMs) * finestStepMs;
  }
}

/** A fair sample of any number of measurements, in bounded memory (reservoir sampling). */
class Sample {
  readonly values: number[] = [];
  #seen = 0;

  add(value: number): void {
    this.#seen += 1;
    if (this.values.length < samplesPerStep) {
      this.values.push(value);
      return;
    }
    const place = Math.floor(Math.random() * this.#seen);
    if (place < samplesPerStep) this.values[place] = value;
  }
}

function mergeSteps(steps: readonly Step[], from: number, stepMs: number): HistoryPoint[] {
  const merged = new Map<number, Step[]>();
  for (const step of steps) {
    if (step.at < from) continue;
    const at = Math.floor(step.at / stepMs) * stepMs;
    const together = merged.get(at);
    if (together === undefined) merged.set(at, [step]);
    else together.push(step);
  }
  return [...merged].map(([at, together]) => pointOf(at, together, stepMs));
}

function pointOf(at: number, steps: readonly Step[], stepMs: number): HistoryPoint {
  const errors: Record<string, number> = {};
  for (const step of steps) for (const [code, count] of step.errors) errors[code] = (errors[code] ?? 0) + count;
  const outputTokens = steps.reduce((sum, step) => sum + step.outputTokens, 0);
  return {
    at,
    requests: steps.reduce((sum, { requests }) => sum + requests, 0),
    errors,
    ttftMs: percentiles(steps.flatMap(({ ttftMs }) => ttftMs.values)),
    interTokenMs: percentiles(steps.flatMap(({ interTokenMs }) => interTokenMs.values)),
    outputTokens,
    tokensPerSecond: outputTokens / (stepMs / 1000),
  };
}

function percentiles(values: readonly number[]): Percentiles | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p95: at(0.95) };
}
