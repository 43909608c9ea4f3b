/** Backend `embedded`: llama.cpp in one child process for each loaded GGUF model. */
import type { Backend, BackendEmbedding, BackendRequest, BackendSink, EmbeddingRequest } from "@plenum/core";
import { abortable } from "./abortable.ts";
import { embedOn } from "./embed.ts";
import type { EmbeddedModel } from "./embedded-model.ts";
import { inUse, invalid, notFound, unsupported } from "./errors.ts";
import { ModelCatalog } from "./model-catalog.ts";
import { type EmbeddedBackendOptions, type EmbeddedSettings, settingsOf } from "./options.ts";
import { checkRequest } from "./request.ts";
import { respondOn } from "./respond.ts";

export type { EmbeddedBackendOptions } from "./options.ts";

export interface EmbeddedBackend extends Backend {
  /** Resolves when the files have been looked at for the first time; `models()` is empty until then. */
  readonly ready: Promise<void>;
  /** Looks at the files again, after one was added, changed or removed. */
  rescan(): Promise<void>;
  /** Names of the models whose first files these are; a file that is no model has none. */
  namesOf(paths: readonly string[]): readonly string[];
  /** Engine children that run now. */
  processes(): readonly { readonly model: string; readonly pid: number }[];
}

/**
 * Makes the backend and begins to look at its files in the background; starts no engine until a model is asked for.
 * @param internal for tests: another program in place of the engine child
 */
export function createEmbeddedBackend(
  options: EmbeddedBackendOptions,
  internal: { readonly engineEntry?: URL } = {},
): EmbeddedBackend {
  const settings = settingsOf(options);
  const catalog = new ModelCatalog(settings, internal.engineEntry);
  const ready = catalog.scan().catch((error: unknown) => {
    settings.logger.warn({ error }, "model files could not be looked at");
  });
  return new Embedded(settings, catalog, ready);
}

class Embedded implements EmbeddedBackend {
  readonly id: string;
  readonly kind = "llama.cpp";
  readonly ready: Promise<void>;
  readonly delete?: (model: string) => Promise<void>;
  readonly #catalog: ModelCatalog;

  constructor({ id, removeModel }: EmbeddedSettings, catalog: ModelCatalog, ready: Promise<void>) {
    this.id = id;
    this.#catalog = catalog;
    this.ready = ready;
    if (removeModel !== undefined) this.delete = (name) => this.#delete(name, removeModel);
  }

  models() {
    return this.#catalog.models.map((model) => model.toBackendModel());
  }

  onChange(listener: () => void): () => void {
    return this.#catalog.onChange(listener);
  }

  rescan(): Promise<void> {
    return this.#catalog.scan();
  }

  namesOf(paths: readonly string[]): readonly string[] {
    return this.#catalog.models.flatMap(({ name, inspected }) => (paths.includes(inspected.file.path) ? [name] : []));
  }

  processes() {
    return this.#catalog.models.flatMap(({ name, runner: { pid } }) =>
      pid === undefined ? [] : [{ model: name, pid }],
    );
  }

  async respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    const model = await this.#usable(request.model, signal);
    if (model.use !== "text") throw unsupported(model.name, "chat", "chat");
    checkRequest(request);
    const startedAt = performance.now();
    const isLoaded = model.runner.state === "loaded";
    if (!isLoaded) sink([{ type: "progress", progress: { kind: "loading" } }]);
    const running = await model.runner.acquire(signal);
    try {
      const loadMs = isLoaded ? undefined : Math.round(performance.now() - startedAt);
      await respondOn({ running, request, sink, signal, loadMs });
      model.runner.noteSuccess();
    } finally {
      model.runner.release(request.keepAliveMs);
    }
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    const model = await this.#usable(request.model, signal);
    if (model.use !== "embedding") throw unsupported(model.name, "embeddings", "make embeddings");
    const { embeddingDimensions: most } = model;
    if (request.dimensions !== undefined && most !== undefined && request.dimensions > most) {
      const numbers = { model: model.name, limit: most, requested: request.dimensions };
      throw invalid(
        `${model.name} has vectors of ${most} dimensions; ask for at most that many.`,
        "dimensions",
        numbers,
      );
    }
    const startedAt = performance.now();
    const isLoaded = model.runner.state === "loaded";
    const running = await model.runner.acquire(signal);
    try {
      const loadMs = isLoaded ? 0 : Math.round(performance.now() - startedAt);
      const answer = await embedOn(running, request, signal);
      model.runner.noteSuccess();
      return { ...answer, loadMs };
    } finally {
      model.runner.release(request.keepAliveMs);
    }
  }

  async load(name: string, options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void> {
    const model = await this.#usable(name, signal);
    model.runner.forgive();
    await model.runner.acquire(signal);
    model.runner.release(options.keepAliveMs);
  }

  async unload(name: string): Promise<void> {
    const model = this.#catalog.find(name);
    if (model === undefined) throw notFound(name);
    await model.runner.unload();
  }

  async #delete(name: string, remove: (path: string) => Promise<void>): Promise<void> {
    const model = this.#catalog.find(name);
    if (model === undefined) throw notFound(name);
    if (model.runner.isInUse) throw inUse(name);
    await model.runner.unload();
    await remove(model.inspected.file.path);
    await this.#catalog.scan();
  }

  close(): Promise<void> {
    return this.#catalog.close();
  }

  async #usable(name: string, signal: AbortSignal): Promise<EmbeddedModel> {
    await abortable(this.ready, signal);
    const model = this.#catalog.find(name);
    if (model === undefined) throw notFound(name);
    model.requireUsable();
    return model;
  }
}
