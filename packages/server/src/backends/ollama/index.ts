/** Backend `ollama`: an Ollama server over its own API, and whatever else speaks it. */
import { setTimeout as pause } from "node:timers/promises";
import type {
  Backend,
  BackendEmbedding,
  BackendModel,
  BackendRequest,
  BackendSink,
  EmbeddingRequest,
  RuntimeHealth,
  TaskProgress,
} from "@plenum/core";
import { CoreError } from "@plenum/core";
import { forcedCall } from "../shared/forced-call.ts";
import { RuntimeProblems } from "../shared/runtime-problems.ts";
import { Upstream } from "../shared/upstream.ts";
import type { UpstreamAnswer } from "../shared/upstream-call.ts";
import { type Candidate, runCandidates } from "./candidates.ts";
import { toVectors } from "./embeddings.ts";
import { answerError, invalid, lineError } from "./errors.ts";
import { numberOf, textOf } from "./json-fields.ts";
import { type FoundModel, ModelList } from "./model-list.ts";
import { offered } from "./offered-models.ts";
import { Prober } from "./probe.ts";
import { pullModel } from "./pull.ts";
import { keepAlive, toCall, toEmbedBody } from "./request.ts";
import { AnswerReader, milliseconds } from "./stream.ts";

export interface OllamaBackendOptions {
  /** Unique in the service. */
  readonly id: string;
  /** `http://host:port`, without `/api`. */
  readonly baseUrl: string;
  /** Sent with every request; never logged. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** Responses that run at once on each model; the server queues what is above its own number. @default 4 */
  readonly parallel?: number;
  /** Names that are offered, or patterns with `*`. @default every model */
  readonly models?: readonly string[];
  /** Milliseconds that an idle model stays loaded, for requests that say nothing; -1: for ever. @default the server's own */
  readonly keepAliveMs?: number;
  /** @default silent */
  readonly logger?: OllamaLogger;
  /** Milliseconds until the head of an answer. @default 600000 */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within an answer. @default 300000 */
  readonly silenceTimeoutMs?: number;
  /** Milliseconds between looks at what the server has. @default 30000 */
  readonly probeIntervalMs?: number;
}

interface OllamaLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Makes the backend and begins to look at the server; it need not be there yet. @throws TypeError for a bad `baseUrl` */
export function createOllamaBackend(options: OllamaBackendOptions): Backend {
  return new OllamaBackend(options);
}

interface Asked extends Candidate {
  readonly request: BackendRequest;
  readonly model: FoundModel;
}

class OllamaBackend implements Backend {
  readonly id: string;
  readonly kind = "ollama";
  readonly ready: Promise<void>;
  readonly #upstream: Upstream;
  readonly #list: ModelList;
  readonly #keepAliveMs: number | undefined;
  readonly #problems: RuntimeProblems;

  constructor(options: OllamaBackendOptions) {
    const { id, models, parallel, keepAliveMs, logger, probeIntervalMs } = options;
    this.id = id;
    this.#keepAliveMs = keepAliveMs;
    this.#upstream = new Upstream(options);
    this.#problems = new RuntimeProblems(id, options.headers ?? {});
    this.#list = new ModelList(new Prober(this.#upstream, offered(models)), {
      id,
      problems: this.#problems,
      parallel: parallel ?? 4,
      probeIntervalMs: probeIntervalMs ?? 30_000,
      onOutage: (detail) => {
        if (detail === undefined) logger?.info({ runtime: id }, "runtime is back");
        else logger?.warn({ runtime: id, detail }, "runtime can't be used");
      },
    });
    this.ready = this.#list.ready;
  }

  models(): readonly BackendModel[] {
    return this.#list.models.map(({ shown: _, ...model }) => model);
  }

  health(): RuntimeHealth {
    return this.#list.health;
  }

  onChange(listener: () => void): () => void {
    return this.#list.onChange(listener);
  }

  async respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    const model = await this.#list.find(request.model, signal);
    if (model.state !== "loaded") sink([{ type: "progress", progress: { kind: "loading" } }]);
    await this.#whileLoading(model, () => {
      if (request.candidates === 1) return this.#answer({ request, model, candidate: 0, sink, signal });
      return runCandidates(request.candidates, { sink, signal }, (one) => this.#answer({ request, model, ...one }));
    });
    if (request.keepAliveMs === 0) void this.#list.refresh();
  }

  async #answer({ request, model, candidate, sink, signal }: Asked): Promise<void> {
    // Ollama takes no tool choice.
    const forced = forcedCall(request);
    const sent = forced?.request ?? request;
    const call = toCall({ ...sent, model: model.name }, { ...this.#context(model), candidate });
    const known = { name: model.name, limits: { ...model.limits, ...contextOf(request) } };
    const reader = new AnswerReader({
      sink: forced?.sinkBefore(sink) ?? sink,
      candidate,
      parallelToolCalls: request.parallelToolCalls,
      onAccepted: () => {
        if (model.state !== "loaded") void this.#list.refresh();
      },
      onRefused: (answer) => answerError(answer, known),
      errorOf: (line) => lineError(line, known),
    });
    await this.#upstream.stream({ method: "POST", ...call, signal }, reader);
    reader.end();
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding> {
    const model = await this.#list.find(request.model, signal);
    const { embeddingDimensions: most } = model.limits;
    if (request.dimensions !== undefined && most !== undefined && request.dimensions > most) {
      throw invalid(`${model.name} has vectors of ${most} dimensions; ask for at most that many.`, "dimensions");
    }
    const body = toEmbedBody({ ...request, model: model.name }, this.#context(model));
    return this.#whileLoading(model, async () => {
      const answer = await this.#post("/api/embed", body, model, signal);
      const vectors = toVectors(answer.body, request.inputs.length);
      return { ...vectors, loadMs: Math.round(milliseconds(answer.body, "load_duration") ?? 0) };
    });
  }

  async load(name: string, options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void> {
    const model = await this.#list.find(name, signal);
    const keepAliveMs = options.keepAliveMs ?? this.#keepAliveMs;
    // A request without a prompt and with 0 would unload it.
    const kept = keepAliveMs === 0 ? {} : keepAlive(keepAliveMs);
    const { chat, completion } = model.capabilities;
    const [path, body] =
      chat || completion ? (["/api/generate", { stream: false }] as const) : (["/api/embed", { input: [] }] as const);
    await this.#whileLoading(model, () => this.#post(path, { model: model.name, ...body, ...kept }, model, signal));
    await this.#list.refresh();
  }

  async unload(name: string): Promise<void> {
    const { signal } = new AbortController();
    const model = await this.#list.find(name, signal);
    if (model.state === "unavailable") return;
    await this.#post("/api/generate", { model: model.name, keep_alive: 0, stream: false }, model, signal);
    // The server answers before the memory is free. Responses that still run keep the model: the timer sees its end.
    for (let tries = 0; tries < 10; tries += 1) {
      await this.#list.refresh();
      const now = this.#list.models.find((other) => other.name === model.name);
      if (now?.state !== "loaded") return;
      await pause(50);
    }
  }

  async delete(name: string): Promise<void> {
    const { signal } = new AbortController();
    const model = await this.#list.find(name, signal);
    await this.#watched(async () => {
      // Both spellings: older servers know only `name`.
      const body = { model: model.name, name: model.name };
      const answer = await this.#upstream.json({ method: "DELETE", path: "/api/delete", body, signal });
      if (answer.status < 200 || answer.status > 299) throw answerError(answer, model);
    });
    await this.#list.refresh();
  }

  async pull(name: string, onProgress: (progress: TaskProgress) => void, signal: AbortSignal): Promise<void> {
    await this.#watched(() => pullModel(this.#upstream, name, onProgress, signal));
    await this.#list.refresh();
  }

  async close(): Promise<void> {
    this.#list.close();
    await this.#upstream.close();
  }

  #context({ shown }: FoundModel) {
    return { shown, ...(this.#keepAliveMs === undefined ? {} : { keepAliveMs: this.#keepAliveMs }) };
  }

  async #post(path: string, body: object, model: FoundModel, signal: AbortSignal): Promise<UpstreamAnswer> {
    const answer = await this.#upstream.json({ method: "POST", path, body, signal });
    if (answer.status < 200 || answer.status > 299) throw answerError(answer, model);
    if (textOf(answer.body, "error") !== undefined) throw lineError(answer.body, model);
    return answer;
  }

  /** Shows a model as loading while a request to it runs, and looks again when the server seems to have changed. */
  async #whileLoading<Value>(model: FoundModel, work: () => Promise<Value>): Promise<Value> {
    if (model.state === "loaded") return this.#watched(work);
    const end = this.#list.markLoading(model.name);
    try {
      return await this.#watched(work);
    } finally {
      end();
      void this.#list.refresh();
    }
  }

  async #watched<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (error) {
      const tells = error instanceof CoreError && ["backend-unavailable", "model-not-found"].includes(error.code);
      if (tells) void this.#list.refresh();
      throw this.#problems.named(error);
    }
  }
}

/** Context that the request itself asks for. */
function contextOf({ runtimeOptions }: BackendRequest): { readonly contextTokens?: number } {
  const contextTokens = numberOf(runtimeOptions["ollama"], "num_ctx");
  return contextTokens === undefined ? {} : { contextTokens };
}
