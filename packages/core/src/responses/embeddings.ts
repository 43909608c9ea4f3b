import type { Caller, Quota } from "../auth/principal.ts";
import { laneOf, type Route } from "../catalog/catalog.ts";
import { forwardRoutes } from "../catalog/forward-routes.ts";
import { requireAvailable, requireCapability } from "../catalog/require-capabilities.ts";
import { resolveFor, usableModels } from "../catalog/usable-models.ts";
import { within } from "../detach.ts";
import { CoreError, toCoreError } from "../problems/core-error.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../request/request.ts";
import { validateEmbeddingRequest } from "../request/validate.ts";
import { refusePastDeadline, watchDeadline } from "./deadline.ts";
import type { DoorKind } from "./response.ts";
import type { Responses, ResponsesParts } from "./responses.ts";

/** Embeddings: same admission, limits, cancel and metrics as responses, without a log (LMSP §5). */
export class Embeddings {
  readonly #parts: ResponsesParts;
  readonly #responses: Responses;
  readonly #pending = new Set<Pending>();

  constructor(parts: ResponsesParts, responses: Responses) {
    this.#parts = parts;
    this.#responses = responses;
  }

  /**
   * @param signal aborts it in every state, queued or running.
   * @throws CoreError as `Responses.create`, and every problem of the run itself.
   */
  async create(
    request: EmbeddingRequest,
    caller: Caller,
    door: DoorKind,
    signal: AbortSignal,
  ): Promise<EmbeddingResult & { readonly model: string }> {
    validateEmbeddingRequest(request);
    const { catalog, clock, observer } = this.#parts;
    await catalog.ready;
    const resolved = resolveFor(catalog, request.model, caller.principal);
    const { model } = resolved;
    requireAvailable(model);
    requireCapability(model, "embeddings", "model", () => usableModels(catalog, caller.principal));
    const [route] = forwardRoutes(resolved, request.via);
    if (route === undefined) throw new CoreError("internal", `'${model.id}' has no runtime.`);
    const createdAt = clock.now();
    const told = { model: model.id, door };
    try {
      const result = await this.#withinQuota(caller.quota, () => this.#run(request, caller, route, signal));
      const totalMs = clock.now() - createdAt;
      observer.embeddingEnded?.({ ...told, inputTokens: result.inputTokens, totalMs });
      return { ...result, timings: { ...result.timings, totalMs }, model: model.id };
    } catch (caught) {
      const error = signal.aborted ? new CoreError("cancelled", "It was cancelled.") : toCoreError(caught);
      observer.embeddingEnded?.({ ...told, inputTokens: 0, totalMs: clock.now() - createdAt, error });
      throw error;
    }
  }

  /** Lets what is under way end within the limit, then stops the rest. Nothing new comes once responses drain. */
  async drain(limitMs: number): Promise<void> {
    await within(this.#parts.clock, limitMs, Promise.allSettled([...this.#pending].map(({ settled }) => settled)));
    for (const pending of [...this.#pending]) {
      pending.stop(new CoreError("interrupted", "The service stopped before the vectors were made; send it again."));
    }
  }

  /** What `run` refuses at once counts nothing. */
  async #withinQuota(quota: Quota | undefined, run: () => Promise<EmbeddingResult>): Promise<EmbeddingResult> {
    if (quota === undefined) return await run();
    const place = await this.#parts.quotas.take(quota);
    let running: Promise<EmbeddingResult>;
    try {
      running = run();
    } catch (error) {
      place.giveBack();
      throw error;
    }
    let tokens = 0;
    try {
      const result = await running;
      tokens = result.inputTokens;
      return result;
    } finally {
      place.end(tokens);
    }
  }

  /** From the checks to the queue nothing waits. */
  #run(request: EmbeddingRequest, caller: Caller, route: Route, signal: AbortSignal): Promise<EmbeddingResult> {
    const { clock, scheduler } = this.#parts;
    if (this.#responses.isDraining) {
      throw new CoreError("draining", "The service is stopping and takes no new requests.", { retryAfterMs: 5_000 });
    }
    signal.throwIfAborted();
    refusePastDeadline(request.deadlineMs, clock.now());
    const place = {
      ...laneOf(route),
      fairnessKey: caller.fairnessKey,
      priority: Math.min(request.priority, caller.principal.topPriority ?? request.priority),
    };
    scheduler.requireRoom(place);
    const pending = new Pending(signal);
    const queuedAt = clock.now();
    this.#pending.add(pending);
    const job = scheduler.submit({ ...place, run: () => this.#embed(request, route, pending, queuedAt) });
    const clearDeadline = watchDeadline(clock, request.deadlineMs, () => {
      pending.stop(new CoreError("deadline-exceeded", "The deadline passed before the vectors were made."));
    });
    return pending.settled.finally(() => {
      clearDeadline();
      job.withdraw();
      this.#pending.delete(pending);
    });
  }

  async #embed(
    request: EmbeddingRequest,
    { backend, model }: Route,
    pending: Pending,
    queuedAt: number,
  ): Promise<void> {
    const { clock } = this.#parts;
    if (pending.signal.aborted) return;
    const startedAt = clock.now();
    try {
      const { vectors, inputTokens, loadMs } = await backend.embed({ ...request, model: model.name }, pending.signal);
      const timings = { queuedMs: startedAt - queuedAt, loadMs, totalMs: clock.now() - queuedAt };
      pending.finish({ vectors, inputTokens, timings });
    } catch (error) {
      pending.stop(error);
    }
  }
}

/** One request from the queue to its vectors; stopped once, from wherever. */
class Pending {
  readonly settled: Promise<EmbeddingResult>;
  readonly #abort = new AbortController();
  readonly #source: AbortSignal;
  #resolve: (result: EmbeddingResult) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  /** @param source the caller's own signal. */
  constructor(source: AbortSignal) {
    this.#source = source;
    this.settled = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    source.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Aborts when it is stopped. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  finish(result: EmbeddingResult): void {
    this.#source.removeEventListener("abort", this.#onAbort);
    this.#resolve(result);
  }

  stop(error: unknown): void {
    this.#source.removeEventListener("abort", this.#onAbort);
    this.#reject(error);
    this.#abort.abort(error);
  }

  readonly #onAbort = (): void => this.stop(this.#source.reason);
}
