import { type BackendModel, CoreError, type RuntimeHealth, toCoreError } from "@plenum/core";
import type { RuntimeProblems } from "../shared/runtime-problems.ts";
import { describeModel } from "./describe-model.ts";
import { notFound } from "./errors.ts";
import type { ShownModel } from "./model-facts.ts";
import type { ProbeResult, Prober } from "./probe.ts";

export interface ModelListOptions {
  readonly id: string;
  readonly problems: RuntimeProblems;
  readonly parallel: number;
  readonly probeIntervalMs: number;
  /** Told when the server goes away and when it comes back. */
  readonly onOutage: (detail: string | undefined) => void;
}

export interface FoundModel extends BackendModel {
  readonly shown: ShownModel | undefined;
}

/** Milliseconds that a server gets for each answer to a probe: one with hundreds of models takes its time for all. */
const probeTimeoutMs = 5_000;
/** Milliseconds that `ready` waits for the first probe. */
const readyTimeoutMs = 2_000;

/** The server's models as they were at the last probe. A server that goes away keeps them, as unavailable. */
export class ModelList {
  /** Resolves after the first probe, at the latest after 2 s. */
  readonly ready: Promise<void>;
  readonly #prober: Prober;
  readonly #options: ModelListOptions;
  readonly #listeners = new Set<() => void>();
  readonly #loading = new Map<string, number>();
  readonly #closed = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #result: ProbeResult = { models: [], hasLogprobs: false };
  #outage: string | undefined;
  #models: readonly FoundModel[] = [];
  #fingerprint = "[[],null]";
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(prober: Prober, options: ModelListOptions) {
    this.#prober = prober;
    this.#options = options;
    this.ready = within(readyTimeoutMs, this.refresh());
    this.#timer = setInterval(() => void this.refresh(), options.probeIntervalMs).unref();
  }

  get models(): readonly FoundModel[] {
    return this.#models;
  }

  get health(): RuntimeHealth {
    return this.#outage === undefined ? { state: "healthy" } : { state: "unavailable", reason: this.#outage };
  }

  /** @throws CoreError model-not-found; the signal's reason while the first probe runs */
  async find(name: string, signal: AbortSignal): Promise<FoundModel> {
    signal.throwIfAborted();
    await unlessAborted(this.ready, signal);
    const names = [name, `${name}:latest`];
    const found = this.#models.find((model) => names.includes(model.name));
    if (found !== undefined) return found;
    // Nothing is known of a server that was never reached.
    if (this.#outage !== undefined && this.#models.length === 0) {
      throw new CoreError("backend-unavailable", this.#outage, { model: name });
    }
    throw notFound(name);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Marks a model as loading until the returned function is called. */
  markLoading(name: string): () => void {
    this.#loading.set(name, (this.#loading.get(name) ?? 0) + 1);
    this.#update();
    return () => {
      const left = (this.#loading.get(name) ?? 1) - 1;
      if (left > 0) this.#loading.set(name, left);
      else this.#loading.delete(name);
      this.#update();
    };
  }

  /** Resolves after a probe that began after this call; never rejects. */
  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#probe().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.refresh();
    });
    return this.#next;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#closed.abort(new CoreError("backend-unavailable", "The service is stopping."));
    this.#listeners.clear();
  }

  async #probe(): Promise<void> {
    const { signal: closed } = this.#closed;
    if (closed.aborted) return;
    const stop = new AbortController();
    const onClose = (): void => stop.abort(closed.reason);
    closed.addEventListener("abort", onClose, { once: true });
    const late = new CoreError("backend-unavailable", "It does not answer in time.");
    const timer = setTimeout(() => stop.abort(late), probeTimeoutMs);
    try {
      this.#result = await this.#prober.probe(stop.signal, () => timer.refresh());
      this.#setOutage(undefined);
    } catch (error) {
      if (closed.aborted) return;
      this.#setOutage(this.#outageSentence(toCoreError(error)));
    } finally {
      clearTimeout(timer);
      closed.removeEventListener("abort", onClose);
    }
    this.#update();
  }

  #outageSentence(error: CoreError): string {
    const { id, problems } = this.#options;
    if (error.code === "backend-unavailable") {
      return `Ollama (runtime '${id}') can't be reached: start it with \`ollama serve\`, or correct its url in the configuration.`;
    }
    return problems.named(error).detail;
  }

  #setOutage(outage: string | undefined): void {
    const hasChanged = (this.#outage === undefined) !== (outage === undefined);
    this.#outage = outage;
    if (hasChanged) this.#options.onOutage(outage);
  }

  #update(): void {
    const { hasLogprobs, models } = this.#result;
    const { parallel } = this.#options;
    const described = models.map((model) => {
      const isLoading = this.#loading.has(model.listed.name);
      return {
        ...describeModel(model, { parallel, hasLogprobs, isLoading, outage: this.#outage }),
        shown: model.shown,
      };
    });
    const fingerprint = JSON.stringify([described, this.#outage]);
    if (fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    this.#models = described;
    for (const listener of [...this.#listeners]) listener();
  }
}

async function within(timeoutMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    if (stop !== undefined) signal.removeEventListener("abort", stop);
  }
}
