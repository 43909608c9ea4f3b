/** Backend for every service that speaks `openai-compatible/1` over NNRP: an adapter before a server, another Plenum. */
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
import type { CapabilityDocument } from "@plenum/profile";
import { backoffMs } from "../shared/backoff.ts";
import { atMost, ModelWatch } from "../shared/model-watch.ts";
import { type ModelFacts, namedModels } from "../shared/openai/listed-model.ts";
import { RuntimeProblems } from "../shared/runtime-problems.ts";
import { embedAt } from "./embeddings.ts";
import { connectProblem } from "./errors.ts";
import { Link } from "./link.ts";
import { toBackendModel } from "./model-facts.ts";
import { kind, type NnrpOptions, type NnrpSettings, settingsOf } from "./options.ts";
import { lookAt } from "./probe.ts";
import { respondAt } from "./respond.ts";

export type { NnrpOptions } from "./options.ts";

/** `ready` waits for the first look at the service at most this many milliseconds. */
const readyMs = 2_000;

/**
 * Makes the backend and connects in the background. While the service is away, the models that are known of it are
 * `unavailable`; the connection is tried again, less and less often, up to every 30 seconds.
 * @throws RangeError for a `parallel` out of range
 */
export function createNnrpBackend(options: NnrpOptions): Backend {
  return new NnrpBackend(settingsOf(options));
}

class NnrpBackend implements Backend {
  readonly id: string;
  readonly kind = kind;
  readonly ready: Promise<void>;
  readonly #settings: NnrpSettings;
  readonly #problems: RuntimeProblems;
  readonly #link: Link;
  readonly #models: ModelWatch<ModelFacts>;
  /** What the service says of its operations. */
  #document: CapabilityDocument | undefined;
  /** The service was seen to lead back to this one. Kept as long as its connection: both ends of a loop see it. */
  #isLoop = false;
  /** Models of which the service says that they do not reason. */
  #plain: ReadonlySet<string> = new Set();

  constructor(settings: NnrpSettings) {
    const { id, logger, secrets } = settings;
    this.id = id;
    this.#settings = settings;
    this.#problems = new RuntimeProblems(id, secrets);
    this.#link = new Link({
      connect: settings.connect,
      authorization: settings.authorization,
      onLost: (error) => this.#lost(error),
    });
    this.#models = new ModelWatch<ModelFacts>({
      id,
      kind,
      logger,
      problems: this.#problems,
      probeIntervalMs: settings.probeIntervalMs,
      awayIntervalMs: (failures) => backoffMs(failures, Math.random()),
      known: namedModels(settings.models),
      look: (signal) => this.#look(signal),
      render: (facts, state, createdAtMs) => toBackendModel(facts, this.#document, state, settings, createdAtMs),
    });
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
    const wantsChunks = request.sampling.logprobs !== undefined || !this.#plain.has(model.name);
    const [link, settings] = [this.#link, this.#settings];
    await this.#noting(signal, () => respondAt({ link, settings, request, model, wantsChunks, sink, signal }));
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    signal.throwIfAborted();
    const { name } = this.#models.require(request.model);
    return this.#noting(signal, () => embedAt(this.#link, { ...request, model: name }, signal));
  }

  /** Such services load by themselves: this only looks whether the model is there. */
  load(model: string, _options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void> {
    return this.#models.requireServed(model, signal);
  }

  /** Such services can't be told to unload: nothing happens. */
  async unload(model: string): Promise<void> {
    this.#models.require(model);
  }

  async close(): Promise<void> {
    await Promise.all([this.#models.close(), this.#link.close()]);
  }

  async #look(signal: AbortSignal): Promise<readonly ModelFacts[]> {
    try {
      const { models, document } = await lookAt(this.#link, this.#settings, signal);
      this.#requireNoLoop(document?.services ?? []);
      this.#document = document;
      this.#plain = new Set(
        models.filter(({ capabilities }) => capabilities.reasoning === false).map(({ name }) => name),
      );
      return models;
    } catch (error) {
      // A connection that is silent while nobody else uses it is dead.
      if (signal.aborted && this.#link.taken === 0) this.#link.drop();
      throw error;
    }
  }

  /** @throws CoreError backend-unavailable */
  #requireNoLoop(services: readonly string[]): void {
    const { serviceId, onServices } = this.#settings;
    if (serviceId !== undefined && services.includes(serviceId)) this.#isLoop = true;
    onServices(this.#isLoop ? [] : services);
    if (!this.#isLoop) return;
    throw new CoreError("backend-unavailable", "The runtime leads back to this service; remove it, here or there.");
  }

  #lost(cause: Error): void {
    this.#isLoop = false;
    const error = connectProblem(cause);
    if (error instanceof CoreError) this.#models.lost(error);
  }

  /** What a call shows of the service's health is looked into at once, not at the next interval. */
  async #noting<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CoreError && error.code === "model-not-found") void this.#models.look();
      throw this.#problems.named(error);
    }
  }
}
