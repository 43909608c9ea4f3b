/** Backend `lmsp`: another service that speaks LMSP, such as another Plenum. */
import {
  type Backend,
  type BackendEmbedding,
  type BackendModel,
  type BackendRequest,
  type BackendSink,
  CoreError,
  type EmbeddingRequest,
  type RuntimeHealth,
} from "@plenum/core";
import { backoffMs } from "../shared/backoff.ts";
import { atMost, ModelWatch } from "../shared/model-watch.ts";
import { isWanted } from "../shared/openai/listed-model.ts";
import { RuntimeProblems } from "../shared/runtime-problems.ts";
import { Upstream } from "../shared/upstream.ts";
import { Changes } from "./changes.ts";
import { embedAt } from "./embeddings.ts";
import { type ModelFacts, toBackendModel } from "./model-facts.ts";
import { kind, type LmspOptions, type LmspSettings, settingsOf } from "./options.ts";
import { Prober } from "./probe.ts";
import { respondAt } from "./respond.ts";

export type { LmspOptions } from "./options.ts";

/** `ready` waits for the first look at the service at most this many milliseconds. */
const readyMs = 2_000;

/**
 * Makes the backend and looks at the service in the background; it need not be there yet. While it is away, the models
 * that are known of it are `unavailable`.
 * @throws RangeError for a `parallel` out of range, TypeError for a bad `baseUrl`
 */
export function createLmspBackend(options: LmspOptions): Backend {
  return new LmspBackend(settingsOf(options));
}

class LmspBackend implements Backend {
  readonly id: string;
  readonly kind = kind;
  readonly ready: Promise<void>;
  readonly #settings: LmspSettings;
  readonly #upstream: Upstream;
  readonly #problems: RuntimeProblems;
  readonly #models: ModelWatch<ModelFacts>;
  readonly #changes: Changes;
  #embeddingsPath: string | undefined;

  constructor(settings: LmspSettings) {
    const { id, baseUrl, headers, authorization, headTimeoutMs, silenceTimeoutMs, logger } = settings;
    this.id = id;
    this.#settings = settings;
    this.#upstream = new Upstream({ baseUrl, headers, headTimeoutMs, silenceTimeoutMs });
    this.#problems = new RuntimeProblems(id, { ...headers, ...authorization });
    const prober = new Prober(this.#upstream, settings);
    this.#models = new ModelWatch<ModelFacts>({
      id,
      kind,
      logger,
      problems: this.#problems,
      probeIntervalMs: settings.probeIntervalMs,
      awayIntervalMs: (failures) => backoffMs(failures, Math.random()),
      known: [],
      look: (signal) => this.#look(prober, signal),
      render: (facts, state, seenAtMs) => toBackendModel(facts, state, settings.parallel, seenAtMs),
    });
    this.#changes = new Changes(this.#upstream, settings, () => void this.#models.look());
    this.ready = atMost(this.#models.look(), readyMs);
  }

  models(): readonly BackendModel[] {
    return this.#models.models;
  }

  health(): RuntimeHealth {
    return this.#models.health;
  }

  onChange(listener: () => void): () => void {
    return this.#models.onChange(listener);
  }

  async respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const model = this.#models.require(request.model);
    const [upstream, settings] = [this.#upstream, this.#settings];
    await this.#noting(signal, () => respondAt({ upstream, settings, request, model, sink, signal }));
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    signal.throwIfAborted();
    const { name } = this.#models.require(request.model);
    const path = this.#embeddingsPath;
    const [upstream, settings] = [this.#upstream, this.#settings];
    const asked = { upstream, settings, path, request: { ...request, model: name }, signal };
    return this.#noting(signal, async () => embedAt(asked));
  }

  /** The service loads by itself when it is asked: this only looks whether the model is there. */
  load(model: string, _options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void> {
    return this.#models.requireServed(model, signal);
  }

  /** What is loaded over there is for those who are there to decide. */
  async unload(model: string): Promise<void> {
    this.#models.require(model);
  }

  async close(): Promise<void> {
    this.#changes.close();
    await this.#models.close();
    await this.#upstream.close();
  }

  async #look(prober: Prober, signal: AbortSignal): Promise<readonly ModelFacts[]> {
    const { models: wanted, onServices } = this.#settings;
    try {
      const { id, models, embeddingsPath } = await prober.look(signal);
      this.#embeddingsPath = embeddingsPath;
      onServices([...new Set([id, ...models.flatMap(({ via = [] }) => via)])]);
      this.#changes.listen();
      return models.filter(({ name }) => isWanted(name, wanted));
    } catch (error) {
      onServices([]);
      throw error;
    }
  }

  /** What a call shows of the service's health is looked into at once, not at the next interval. */
  async #noting<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      const tells = error instanceof CoreError && ["backend-unavailable", "model-not-found"].includes(error.code);
      if (tells) void this.#models.look();
      throw this.#problems.named(error);
    }
  }
}
