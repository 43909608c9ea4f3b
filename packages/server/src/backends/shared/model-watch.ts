import { type BackendModel, CoreError, type RuntimeHealth, toCoreError } from "@plenum/core";
import type { RuntimeProblems } from "./runtime-problems.ts";

/** Where a backend writes what an operator should know of its runtime; pino's loggers fit. */
export interface RuntimeLogger {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export interface WatchedState {
  readonly state: BackendModel["state"];
  readonly stateDetail?: string;
}

export interface ModelWatchOptions<Facts extends { readonly name: string }> {
  readonly id: string;
  readonly kind: string;
  readonly logger: RuntimeLogger;
  readonly problems: RuntimeProblems;
  /** Milliseconds between looks at a runtime that answers. */
  readonly probeIntervalMs: number;
  /** Milliseconds until a runtime that is away or loading is looked at again, after so many failures in a row. */
  readonly awayIntervalMs: (failures: number) => number;
  /** What is known before the runtime was ever seen. */
  readonly known: readonly Facts[];
  /** How a person starts it, where its problems do not say so themselves. */
  readonly startHint?: string;
  /** Asks the runtime for its models. @throws CoreError */
  readonly look: (signal: AbortSignal) => Promise<readonly Facts[]>;
  /** The catalog's entry of a model. @param createdAtMs when it was first seen */
  readonly render: (facts: Facts, state: WatchedState, createdAtMs: number) => BackendModel;
}

/** A look at a runtime that does not answer ends after this many milliseconds. */
const lookTimeoutMs = 5_000;

/** What a runtime serves, looked at again and again. */
export class ModelWatch<Facts extends { readonly name: string }> {
  readonly #options: ModelWatchOptions<Facts>;
  readonly #listeners = new Set<() => void>();
  readonly #firstSeen = new Map<string, number>();
  #facts: readonly Facts[];
  #state: WatchedState = { state: "unavailable", stateDetail: "The runtime has not been looked at yet; ask again." };
  #models: readonly BackendModel[] = [];
  /** What keeps the runtime away. */
  #problem: CoreError | undefined;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: { readonly done: Promise<void>; readonly abort: AbortController } | undefined;
  #isClosed = false;

  constructor(options: ModelWatchOptions<Facts>) {
    this.#options = options;
    this.#facts = options.known;
    this.#models = this.#render();
  }

  get models(): readonly BackendModel[] {
    return this.#models;
  }

  /** The last look found the runtime. */
  get isReachable(): boolean {
    return this.#state.state === "available";
  }

  /** Why the runtime can't be used now. */
  get stateDetail(): string | undefined {
    return this.#state.stateDetail;
  }

  get health(): RuntimeHealth {
    const { state, stateDetail } = this.#state;
    if (state === "unavailable") return { state, ...(stateDetail === undefined ? {} : { reason: stateDetail }) };
    return state === "loading" ? { state: "degraded", reason: "The runtime still loads." } : { state: "healthy" };
  }

  /** @throws CoreError model-not-found; while nothing is known of the runtime, what keeps it away: backend-unavailable and others */
  require(name: string): BackendModel {
    const model = this.#models.find((each) => each.name === name || each.aliases.includes(name));
    if (model !== undefined) return model;
    if (!this.isReachable && this.#models.length === 0) {
      const { code = "backend-unavailable", details } = this.#problem ?? {};
      const detail = this.#state.stateDetail ?? "The runtime can't be reached.";
      throw new CoreError(code, detail, { ...details, model: name });
    }
    const detail = `${this.#options.id} has no model ${name}; the list of models tells what there is.`;
    throw new CoreError("model-not-found", detail, { model: name, param: "model" });
  }

  /**
   * For runtimes that load by themselves: looks whether the model is there to be asked.
   * @throws CoreError as `require`; backend-unavailable; the signal's reason.
   */
  async requireServed(name: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.isReachable) await this.look();
    signal.throwIfAborted();
    const { state, stateDetail } = this.require(name);
    if (state !== "unavailable") return;
    throw new CoreError("backend-unavailable", stateDetail ?? "The runtime can't be reached.", { model: name });
  }

  onChange(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Looks at the runtime, or waits for the look that is under way; never rejects. */
  look(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#running ??= this.#begin();
    return this.#running.done;
  }

  /** Ends the looks; settles when none is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#running?.abort.abort(new CoreError("backend-error", "The backend was closed."));
    await this.#running?.done;
    this.#listeners.clear();
  }

  /** The runtime went away: its models are `unavailable` until a look finds it again. */
  lost(error: CoreError): void {
    if (this.#isClosed || this.#running !== undefined) return;
    this.#away(error);
    this.#wait();
  }

  #begin() {
    clearTimeout(this.#timer);
    const abort = new AbortController();
    const done = this.#lookOnce(abort).finally(() => {
      this.#running = undefined;
      if (!this.#isClosed) this.#wait();
    });
    return { done, abort };
  }

  #wait(): void {
    const { probeIntervalMs, awayIntervalMs } = this.#options;
    const intervalMs = this.isReachable ? probeIntervalMs : Math.min(probeIntervalMs, awayIntervalMs(this.#failures));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.look(), intervalMs);
    this.#timer.unref();
  }

  async #lookOnce(abort: AbortController): Promise<void> {
    const late = new CoreError("backend-unavailable", "The runtime does not answer in time; check that it runs.");
    const timer = setTimeout(() => abort.abort(late), lookTimeoutMs);
    timer.unref();
    try {
      this.#facts = await this.#options.look(abort.signal);
      this.#failures = 0;
      this.#enter({ state: "available" });
    } catch (error) {
      this.#away(toCoreError(error));
    } finally {
      clearTimeout(timer);
    }
  }

  #away(error: CoreError): void {
    this.#failures += 1;
    this.#problem = error;
    if (error.code === "model-loading") {
      this.#enter({ state: "loading" });
      return;
    }
    const { kind, startHint, problems } = this.#options;
    const isAway = error.code === "backend-unavailable" && startHint !== undefined;
    const hint = isAway ? ` (${kind}: ${startHint}.)` : "";
    this.#enter({ state: "unavailable", stateDetail: problems.named(error).detail + hint });
  }

  #enter(state: WatchedState): void {
    if (this.#isClosed) return;
    const { id, kind, logger } = this.#options;
    if (state.state !== this.#state.state || state.stateDetail !== this.#state.stateDetail) {
      const seen = { backend: id, kind, models: this.#facts.length };
      if (state.state === "unavailable") logger.warn({ ...seen, reason: state.stateDetail }, "runtime is away");
      else logger.info({ ...seen, state: state.state }, "runtime is seen");
    }
    const isSame = state.state === this.#state.state && state.stateDetail === this.#state.stateDetail;
    this.#state = state;
    const models = this.#render();
    if (isSame && JSON.stringify(models) === JSON.stringify(this.#models)) return;
    this.#models = models;
    for (const listener of [...this.#listeners]) listener();
  }

  #render(): readonly BackendModel[] {
    return this.#facts.map((facts) => {
      // `created` of a list is the time of asking on some servers, so the first sight counts.
      const createdAtMs = this.#firstSeen.get(facts.name) ?? Date.now();
      this.#firstSeen.set(facts.name, createdAtMs);
      return this.#options.render(facts, this.#state, createdAtMs);
    });
  }
}

/** Waits for work, but not longer than this. */
export async function atMost(work: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
    timer.unref();
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
