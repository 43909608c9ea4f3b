import { type BackendModel, CoreError, toCoreError } from "@plenum/core";
import type { RuntimeProblems } from "../shared/runtime-problems.ts";
import type { Upstream } from "../shared/upstream.ts";
import { type Dialect, dialectOf, type Probe } from "./dialects.ts";
import { type ModelFacts, type ModelState, toBackendModel } from "./model-facts.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";
import { type Learn, lookAt, namedModels } from "./probe.ts";

/** A look at a server that does not answer ends after this many milliseconds. */
const probeTimeoutMs = 5_000;
/** A server that is away or loading is looked at this often, in milliseconds. */
const awayIntervalMs = 2_000;

/** What the server serves, looked at again and again. */
export class ModelList {
  readonly #settings: OpenaiCompatibleSettings;
  readonly #dialect: Dialect;
  readonly #upstream: Upstream;
  readonly #problems: RuntimeProblems;
  readonly #listeners = new Set<() => void>();
  readonly #firstSeen = new Map<string, number>();
  readonly #remembered = new Map<Probe, Learn>();
  #facts: readonly ModelFacts[];
  #state: ModelState = { state: "unavailable", stateDetail: "The server has not been looked at yet; ask again." };
  #models: readonly BackendModel[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: { readonly done: Promise<void>; readonly abort: AbortController } | undefined;
  #isClosed = false;

  constructor(settings: OpenaiCompatibleSettings, upstream: Upstream, problems: RuntimeProblems) {
    this.#settings = settings;
    this.#problems = problems;
    this.#upstream = upstream;
    this.#dialect = dialectOf(settings.kind);
    this.#facts = namedModels(settings);
    this.#models = this.#render();
  }

  get models(): readonly BackendModel[] {
    return this.#models;
  }

  /** The last look found the server. */
  get isReachable(): boolean {
    return this.#state.state === "available";
  }

  /** @throws CoreError model-not-found; backend-unavailable while nothing is known of the server */
  require(name: string): BackendModel {
    const model = this.#models.find((each) => each.name === name || each.aliases.includes(name));
    if (model !== undefined) return model;
    if (!this.isReachable && this.#models.length === 0) {
      throw new CoreError("backend-unavailable", this.#state.stateDetail ?? "The runtime can't be reached.", {
        model: name,
      });
    }
    const detail = `${this.#settings.id} has no model ${name}; the list of models tells what there is.`;
    throw new CoreError("model-not-found", detail, { model: name, param: "model" });
  }

  onChange(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Looks at the server, or waits for the look that is under way; never rejects. */
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
    const { probeIntervalMs } = this.#settings;
    const intervalMs = this.isReachable ? probeIntervalMs : Math.min(probeIntervalMs, awayIntervalMs);
    this.#timer = setTimeout(() => void this.look(), intervalMs);
    this.#timer.unref();
  }

  async #lookOnce(abort: AbortController): Promise<void> {
    const late = new CoreError("backend-unavailable", "The runtime does not answer in time; check that it runs.");
    const timer = setTimeout(() => abort.abort(late), probeTimeoutMs);
    timer.unref();
    try {
      this.#facts = await lookAt({
        upstream: this.#upstream,
        settings: this.#settings,
        dialect: this.#dialect,
        signal: abort.signal,
        remembered: this.#remembered,
      });
      this.#enter({ state: "available" });
    } catch (error) {
      this.#remembered.clear();
      this.#enter(this.#awayState(toCoreError(error)));
    } finally {
      clearTimeout(timer);
    }
  }

  #awayState(error: CoreError): ModelState {
    if (error.code === "model-loading") return { state: "loading" };
    const hint = error.code === "backend-unavailable" ? ` (${this.#settings.kind}: ${this.#dialect.startHint}.)` : "";
    return { state: "unavailable", stateDetail: this.#problems.named(error).detail + hint };
  }

  #enter(state: ModelState): void {
    if (this.#isClosed) return;
    const { id, kind, logger } = this.#settings;
    if (state.state !== this.#state.state || state.stateDetail !== this.#state.stateDetail) {
      const seen = { backend: id, kind, models: this.#facts.length };
      if (state.state === "unavailable") logger.warn({ ...seen, reason: state.stateDetail }, "runtime is away");
      else logger.info({ ...seen, state: state.state }, "runtime is seen");
    }
    this.#state = state;
    const models = this.#render();
    if (JSON.stringify(models) === JSON.stringify(this.#models)) return;
    this.#models = models;
    for (const listener of [...this.#listeners]) listener();
  }

  #render(): readonly BackendModel[] {
    return this.#facts.map((facts) => {
      // `created` of a list is the time of asking on some servers, so the first sight counts.
      const createdAtMs = this.#firstSeen.get(facts.name) ?? Date.now();
      this.#firstSeen.set(facts.name, createdAtMs);
      return toBackendModel(facts, this.#state, this.#settings, this.#dialect, createdAtMs);
    });
  }
}
