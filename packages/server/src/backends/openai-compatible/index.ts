/** Backend for every server that speaks OpenAI's API: llama-server, vLLM, LM Studio and the like are dialect records. */
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
import { atMost, type ModelWatch } from "../shared/model-watch.ts";
import type { ModelFacts } from "../shared/openai/listed-model.ts";
import { RuntimeProblems } from "../shared/runtime-problems.ts";
import { Upstream } from "../shared/upstream.ts";
import { dialectOf } from "./dialects.ts";
import { embedAt } from "./embeddings.ts";
import { createModelList } from "./model-list.ts";
import { type OpenaiCompatibleOptions, type OpenaiCompatibleSettings, settingsOf } from "./options.ts";
import { respondAt } from "./respond.ts";

export type { OpenaiCompatibleOptions } from "./options.ts";

/** `ready` waits for the first look at the server at most this many milliseconds. */
const readyMs = 2_000;

/**
 * Makes the backend and looks at its server in the background. A server that is away leaves the models that are known
 * of it `unavailable`; it is seen when it comes back.
 * @throws TypeError for a `baseUrl` that is no http or https URL, RangeError for a `parallel` out of range
 */
export function createOpenaiCompatibleBackend(options: OpenaiCompatibleOptions): Backend {
  return new OpenaiCompatible(settingsOf(options));
}

class OpenaiCompatible implements Backend {
  readonly id: string;
  readonly kind: string;
  readonly ready: Promise<void>;
  readonly #settings: OpenaiCompatibleSettings;
  readonly #upstream: Upstream;
  readonly #models: ModelWatch<ModelFacts>;
  readonly #problems: RuntimeProblems;

  constructor(settings: OpenaiCompatibleSettings) {
    this.id = settings.id;
    this.kind = settings.kind;
    this.#settings = settings;
    const { baseUrl, headers, headTimeoutMs, silenceTimeoutMs } = settings;
    this.#upstream = new Upstream({ baseUrl, headers, headTimeoutMs, silenceTimeoutMs });
    this.#problems = new RuntimeProblems(settings.id, headers);
    this.#models = createModelList(settings, this.#upstream, this.#problems);
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
    const upstream = this.#upstream;
    await this.#noting(signal, () => respondAt({ upstream, settings: this.#settings, request, model, sink, signal }));
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    signal.throwIfAborted();
    const { name } = this.#models.require(request.model);
    const { kind } = this;
    const asked = { ...request, model: name };
    return this.#noting(signal, () => embedAt(this.#upstream, asked, kind, dialectOf(kind), signal));
  }

  /** Such servers load by themselves or not at all: this only looks whether the model is there. */
  load(model: string, _options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void> {
    return this.#models.requireServed(model, signal);
  }

  /** Such servers can't be told to unload: nothing happens. */
  async unload(model: string): Promise<void> {
    this.#models.require(model);
  }

  async close(): Promise<void> {
    await this.#models.close();
    await this.#upstream.close();
  }

  /** What a call shows of the server's health is looked into at once, not at the next interval. */
  async #noting<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    try {
      const result = await call();
      if (!this.#models.isReachable) void this.#models.look();
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const isAway = error instanceof CoreError && error.code === "backend-unavailable";
      const isGone = error instanceof CoreError && error.code === "model-not-found";
      if (isAway || isGone) void this.#models.look();
      throw this.#problems.named(error);
    }
  }
}
