import type { Caller } from "../auth/principal.ts";
import type { Route } from "../catalog/catalog.ts";
import { requireAvailable, requireCapability } from "../catalog/require-capabilities.ts";
import { resolveFor, usableModels } from "../catalog/usable-models.ts";
import { CoreError, toCoreError } from "../problems/core-error.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../request/request.ts";
import { validateEmbeddingRequest } from "../request/validate.ts";
import type { DoorKind } from "./response.ts";
import type { Responses, ResponsesParts } from "./responses.ts";

/** Embeddings: same admission, limits, cancel and metrics as responses, without a log (LMSP §5). */
export class Embeddings {
  readonly #parts: ResponsesParts;
  readonly #responses: Responses;

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
    if (this.#responses.isDraining)
      throw new CoreError("draining", "The service is stopping.", { retryAfterMs: 5_000 });
    validateEmbeddingRequest(request);
    const { catalog, clock, observer } = this.#parts;
    await catalog.ready;
    const { model, routes } = resolveFor(catalog, request.model, caller.principal);
    requireAvailable(model);
    requireCapability(model, "embeddings", "model", usableModels(catalog, caller.principal));
    const [route] = routes;
    if (route === undefined) throw new CoreError("internal", `'${model.id}' has no runtime.`);
    const createdAt = clock.now();
    try {
      const result = await this.#queue(request, caller, route, signal);
      const totalMs = clock.now() - createdAt;
      observer.embeddingEnded?.({ model: model.id, door, inputTokens: result.inputTokens, totalMs });
      return { ...result, timings: { ...result.timings, totalMs }, model: model.id };
    } catch (caught) {
      const error = signal.aborted ? new CoreError("cancelled", "It was cancelled.") : toCoreError(caught);
      observer.embeddingEnded?.({ model: model.id, door, inputTokens: 0, totalMs: clock.now() - createdAt, error });
      throw error;
    }
  }

  #queue(request: EmbeddingRequest, caller: Caller, route: Route, signal: AbortSignal): Promise<EmbeddingResult> {
    const { scheduler, clock } = this.#parts;
    const { backend, model } = route;
    const queuedAt = clock.now();
    return new Promise((resolve, reject) => {
      const abort = new AbortController();
      const stop = (error: unknown): void => {
        abort.abort(error);
        withdraw();
        reject(error);
      };
      const onAbort = (): void => stop(signal.reason);
      const clearDeadline = this.#watchDeadline(request, stop);
      const settle = (): void => {
        clearDeadline();
        signal.removeEventListener("abort", onAbort);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      const run = async (): Promise<void> => {
        const queuedMs = clock.now() - queuedAt;
        try {
          abort.signal.throwIfAborted();
          const { vectors, inputTokens, loadMs } = await backend.embed({ ...request, model: model.name }, abort.signal);
          resolve({ vectors, inputTokens, timings: { queuedMs, loadMs, totalMs: clock.now() - queuedAt } });
        } catch (error) {
          reject(error);
        } finally {
          settle();
        }
      };
      let withdraw: () => void = () => {};
      try {
        const take = scheduler.submit({
          lane: `${backend.id}/${model.name}`,
          capacity: () => model.limits.parallel,
          fairnessKey: caller.fairnessKey,
          priority: Math.min(request.priority, caller.principal.topPriority ?? request.priority),
          run,
        });
        withdraw = () => {
          if (take()) settle();
        };
        if (signal.aborted) onAbort();
      } catch (error) {
        settle();
        reject(error);
      }
    });
  }

  #watchDeadline({ deadlineMs }: EmbeddingRequest, stop: (error: CoreError) => void): () => void {
    if (deadlineMs === undefined) return () => {};
    const { clock } = this.#parts;
    return clock.after(Math.max(0, deadlineMs - clock.now()), () => {
      stop(new CoreError("deadline-exceeded", "The deadline passed before the vectors were made."));
    });
  }
}
