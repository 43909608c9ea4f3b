import type { BackendModel } from "../catalog/model.ts";
import type { BackendEvent } from "../events/backend-events.ts";
import type { Backend, BackendEmbedding, BackendRequest, BackendSink } from "../ports/backend.ts";
import { CoreError } from "../problems/core-error.ts";
import type { EmbeddingRequest } from "../request/request.ts";

/** What a scripted backend does for one request; each step is one batch. */
export type ScriptedAnswer = (
  request: BackendRequest,
  signal: AbortSignal,
) => AsyncIterable<readonly BackendEvent[]> | Iterable<readonly BackendEvent[]>;

/** An answer of plain text pieces, one batch each. */
export function textAnswer(pieces: readonly string[], inputTokens = 3): ScriptedAnswer {
  return function* () {
    yield [{ type: "accepted", inputTokens }];
    for (const delta of pieces) yield [{ type: "text", candidate: 0, delta }];
    yield [
      { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "stop" },
      {
        type: "usage",
        usage: { inputTokens, outputTokens: pieces.length, cachedInputTokens: 0, reasoningTokens: 0 },
      },
    ];
  };
}

/** A model that can do everything. */
export function scriptedModel(name: string, changes: Partial<BackendModel> = {}): BackendModel {
  return {
    name,
    title: name,
    aliases: [],
    state: "loaded",
    capabilities: {
      chat: true,
      completion: true,
      embeddings: false,
      tools: true,
      structuredOutput: true,
      reasoning: false,
      vision: false,
      logprobs: true,
      insert: false,
    },
    emulated: [],
    limits: { contextTokens: 4096, parallel: 4 },
    details: { family: "test", format: "gguf" },
    parameters: {},
    createdAtMs: 1_700_000_000_000,
    ...changes,
  };
}

/** A backend for tests: answers as told, keeps the requests it got. */
export class ScriptedBackend implements Backend {
  readonly id: string;
  readonly kind = "scripted";
  /** Requests as they came, in order. */
  readonly requests: BackendRequest[] = [];
  readonly embeddingRequests: EmbeddingRequest[] = [];
  /** Runs that have begun and not ended. */
  running = 0;
  aborted = 0;
  answer: ScriptedAnswer = textAnswer(["Hel", "lo"]);
  #models: readonly BackendModel[];
  readonly #listeners = new Set<() => void>();

  constructor(id: string, models: readonly BackendModel[]) {
    this.id = id;
    this.#models = models;
  }

  models(): readonly BackendModel[] {
    return this.#models;
  }

  setModels(models: readonly BackendModel[]): void {
    this.#models = models;
    for (const listener of [...this.#listeners]) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    this.#require(request.model);
    signal.throwIfAborted();
    this.requests.push(request);
    this.running += 1;
    try {
      for await (const events of this.answer(request, signal)) {
        signal.throwIfAborted();
        sink(events);
      }
      signal.throwIfAborted();
    } catch (error) {
      if (signal.aborted) this.aborted += 1;
      throw error;
    } finally {
      this.running -= 1;
    }
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    this.embeddingRequests.push(request);
    signal.throwIfAborted();
    const vectors = request.inputs.map(() => Float32Array.of(0.6, -0.8, 0));
    return { vectors, inputTokens: 2 * request.inputs.length, loadMs: 0 };
  }

  async load(model: string): Promise<void> {
    this.#require(model);
  }

  async unload(): Promise<void> {}

  async close(): Promise<void> {}

  #require(model: string): void {
    if (this.#models.some(({ name }) => name === model)) return;
    throw new CoreError("model-not-found", `There is no model '${model}'.`, { model });
  }
}
