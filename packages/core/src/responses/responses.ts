import { type Caller, maySee, type Principal } from "../auth/principal.ts";
import type { Catalog, ResolvedModel } from "../catalog/catalog.ts";
import { requireAvailable, requireCapabilities } from "../catalog/require-capabilities.ts";
import { settleRequest } from "../catalog/settle.ts";
import { resolveFor, usableModels } from "../catalog/usable-models.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventLog, LogReader } from "../ports/event-log.ts";
import type { Ids } from "../ports/ids.ts";
import type { Leases } from "../ports/lease.ts";
import type { Observer } from "../ports/observer.ts";
import type { Page, ResponseQuery, ResponseRecord, Store } from "../ports/store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { ResponseRequest } from "../request/request.ts";
import { validateRequest } from "../request/validate.ts";
import type { Scheduler } from "../scheduling/scheduler.ts";
import { unroll } from "./chain.ts";
import { OwnerWatch } from "./owner-watch.ts";
import { type DoorKind, isTerminal, type Response } from "./response.ts";
import { Retention, type RetentionLimits } from "./retention.ts";
import { Run } from "./run.ts";

export interface ResponsesLimits extends RetentionLimits {
  /** Milliseconds that a response with `onDisconnect: continue` waits for a reader to come back. */
  readonly resumeWindowMs: number;
  /** Milliseconds from acceptance after which every response fails; 0: no default deadline. */
  readonly defaultDeadlineMs: number;
}

export interface ResponsesParts {
  readonly catalog: Catalog;
  readonly scheduler: Scheduler;
  readonly log: EventLog;
  readonly store: Store;
  readonly leases: Leases;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  readonly limits: ResponsesLimits;
}

/** A response in the hands of the connection that made it. */
export interface OwnedResponse {
  readonly id: string;
  /** Catalog entry that serves it. */
  readonly model: ResolvedModel["model"];
  /** Fields, in the native interface's spelling, that were taken and change nothing on this model. */
  readonly withoutEffect: readonly string[];
  /** Resolves with the final Response; never rejects. */
  readonly done: Promise<Response>;
  /** A reader from the first event on. */
  read(): LogReader;
  /** The connection was lost before the end: `onDisconnect` decides. Does nothing after the end. */
  ownerLeft(): void;
}

/** Unique part of an id: `resp_<x>` and `chatcmpl-<x>` name the same response. */
export function uniquePart(id: string): string {
  return id.replace(/^(resp_|chatcmpl-|cmpl-)/, "");
}

/** All responses, whatever door they came through (LMSP §5). */
export class Responses {
  readonly #parts: ResponsesParts;
  readonly #runs = new Map<string, { readonly run: Run; readonly owner: OwnerWatch }>();
  readonly #retention: Retention;
  readonly #unsubscribe: () => void;
  #draining = false;

  constructor(parts: ResponsesParts) {
    this.#parts = parts;
    this.#retention = new Retention(parts.clock, parts.limits, (id) => this.#forget(id));
    this.#unsubscribe = parts.bus.subscribe("response.cancel", (id) => void this.#applyCancel(id));
  }

  /**
   * Accepts a request: checked, admitted, queued; its first event is in the log when this resolves.
   * @throws CoreError invalid-request, model-not-found, unsupported-capability, forbidden, not-found, overloaded,
   * draining.
   */
  async create(request: ResponseRequest, caller: Caller, door: DoorKind): Promise<OwnedResponse> {
    this.#refuseWhenFull();
    validateRequest(request);
    await this.#parts.catalog.ready;
    const resolved = this.#resolveModel(request, caller.principal);
    const settled = settleRequest(request, resolved.model);
    requireCapabilities(resolved.model, settled.request, usableModels(this.#parts.catalog, caller.principal));
    const unrolled = await this.#unrollChain(settled.request, caller.principal);
    if (request.supersedes !== undefined) await this.cancel(request.supersedes, caller.principal, "superseded");
    const x = this.#parts.ids.unique();
    const id = `resp_${x}`;
    const lease = await this.#parts.leases.acquire(id);
    if (lease === undefined) throw new CoreError("internal", `The fresh id ${id} is taken.`);
    const record: ResponseRecord = {
      request: unrolled,
      owner: caller.principal.id,
      fairnessKey: caller.fairnessKey,
      epoch: lease.epoch,
      response: this.#firstResponse(id, request, resolved, caller.principal, door),
    };
    const run = this.#makeRun(x, record, lease);
    try {
      this.#enqueue(run, record, resolved);
    } catch (error) {
      await this.#refuseAccepted(id, lease);
      throw error;
    }
    await this.#parts.store.put({ ...record, response: run.response });
    return this.#owned(id, run, resolved, settled.withoutEffect);
  }

  /** @throws CoreError not-found, also for what the principal may not see. */
  async get(id: string, principal: Principal): Promise<ResponseRecord> {
    const record = await this.#parts.store.get(`resp_${uniquePart(id)}`);
    if (record === undefined || !maySee(principal, record.owner)) {
      throw new CoreError("not-found", `There is no response '${id}'.`, { param: "id" });
    }
    const live = this.#runs.get(record.response.id);
    return live === undefined ? record : { ...record, response: live.run.response };
  }

  /** Newest first; without `admin`, own ones only. */
  async list(query: ResponseQuery, principal: Principal): Promise<Page<ResponseRecord>> {
    const owner = principal.scopes.has("admin") ? query.owner : principal.id;
    const page = await this.#parts.store.list({ ...query, ...(owner === undefined ? {} : { owner }) });
    const data = page.data.map((record) => {
      const live = this.#runs.get(record.response.id);
      return live === undefined ? record : { ...record, response: live.run.response };
    });
    return { ...page, data };
  }

  /**
   * Idempotent: what has ended stays as it is.
   * @throws CoreError not-found
   */
  async cancel(id: string, principal: Principal, reason = "requested"): Promise<Response> {
    const record = await this.get(id, principal);
    const responseId = record.response.id;
    if (isTerminal(record.response)) return record.response;
    await this.#parts.store.requestCancel(responseId, reason);
    // Here at once; on another replica by the notification.
    this.#runs.get(responseId)?.run.cancel(reason);
    this.#parts.bus.publish("response.cancel", responseId);
    return (await this.get(id, principal)).response;
  }

  /** Cancels it when it still runs, then forgets it. @throws CoreError not-found */
  async delete(id: string, principal: Principal): Promise<void> {
    const { response } = await this.get(id, principal);
    this.#runs.get(response.id)?.run.cancel("requested");
    await this.#forget(response.id);
  }

  /**
   * A reader after the given sequence; undefined when a finished response has nothing after it.
   * @throws CoreError not-found, events-expired.
   */
  async events(id: string, after: number, principal: Principal): Promise<LogReader | undefined> {
    const { response } = await this.get(id, principal);
    const extent = this.#parts.log.extent(response.id);
    if (extent === undefined) {
      throw new CoreError("events-expired", "The events are no longer kept; read the response itself.");
    }
    if (after >= extent.last && extent.ended) return undefined;
    if (after > extent.last) {
      throw new CoreError("invalid-request", `The last event so far is ${extent.last}, not ${after}.`, {
        param: "after",
        limit: extent.last,
        requested: after,
      });
    }
    const reader = this.#parts.log.read(response.id, { after, visibility: "live" });
    return this.#runs.get(response.id)?.owner.watched(reader) ?? reader;
  }

  /** Responses that are queued or run here. */
  get active(): number {
    return this.#runs.size;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /** Takes nothing new, lets what runs end within the limit, then ends the rest as `interrupted`. */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    const ended = Promise.all([...this.#runs.values()].map(({ run }) => run.done));
    await Promise.race([ended, new Promise<void>((resolve) => void this.#parts.clock.after(limitMs, resolve))]);
    for (const { run } of [...this.#runs.values()]) {
      run.fail(new CoreError("interrupted", "The service stopped before the answer was complete; send it again."));
    }
    await ended;
    this.#unsubscribe();
    this.#retention.close();
  }

  #refuseWhenFull(): void {
    if (this.#draining) {
      throw new CoreError("draining", "The service is stopping and takes no new requests.", { retryAfterMs: 5_000 });
    }
    if (!this.#parts.log.hasRoom) {
      throw new CoreError("overloaded", "The memory for event streams is full; try again when answers have ended.", {
        retryAfterMs: 1_000,
      });
    }
  }

  #resolveModel(request: ResponseRequest, principal: Principal): ResolvedModel {
    const resolved = resolveFor(this.#parts.catalog, request.model, principal);
    requireAvailable(resolved.model);
    return resolved;
  }

  async #unrollChain(request: ResponseRequest, principal: Principal): Promise<ResponseRequest> {
    if (request.previousResponseId === undefined) return request;
    const earlier = await this.get(request.previousResponseId, principal).catch(() => {
      throw new CoreError("not-found", `There is no response '${request.previousResponseId}'.`, {
        param: "previous_response_id",
      });
    });
    return unroll(request, earlier);
  }

  #firstResponse(
    id: string,
    request: ResponseRequest,
    { model }: ResolvedModel,
    principal: Principal,
    door: DoorKind,
  ): Response {
    const { clock, limits } = this.#parts;
    const createdAt = clock.now();
    const deadlineMs =
      request.deadlineMs ?? (limits.defaultDeadlineMs > 0 ? createdAt + limits.defaultDeadlineMs : undefined);
    return {
      id,
      status: "queued",
      model: model.id,
      door,
      output: [],
      finishes: [],
      timings: {},
      attempt: 1,
      ...(request.previousResponseId === undefined
        ? {}
        : { previousResponseId: `resp_${uniquePart(request.previousResponseId)}` }),
      priority: Math.min(request.priority, principal.topPriority ?? request.priority),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      createdAt,
      metadata: request.metadata,
    };
  }

  #makeRun(
    x: string,
    record: ResponseRecord,
    lease: { readonly epoch: number; readonly lost: AbortSignal; release(): Promise<void> },
  ): Run {
    const { log, clock, observer, store } = this.#parts;
    const run = new Run({
      x,
      request: record.request,
      response: record.response,
      lease,
      log,
      clock,
      observer,
      onStart: (response) => void store.put({ ...record, response }),
      onEnd: (response) => {
        const ended = this.#runs.get(response.id);
        this.#runs.delete(response.id);
        ended?.owner.close();
        this.#retention.keep(response.id, record.request.store);
        void store.put({ ...record, response });
        void lease.release();
      },
    });
    return run;
  }

  #enqueue(run: Run, record: ResponseRecord, resolved: ResolvedModel): void {
    const { scheduler, observer, clock, limits, log } = this.#parts;
    const { id } = record.response;
    const [route] = resolved.routes;
    if (route === undefined) throw new CoreError("internal", `'${resolved.model.id}' has no runtime.`);
    const owner = new OwnerWatch({
      run,
      policy: record.request.onDisconnect,
      clock,
      windowMs: limits.resumeWindowMs,
      log,
      id,
    });
    this.#runs.set(id, { run, owner });
    const withdraw = scheduler.submit({
      lane: `${route.backend.id}/${route.model.name}`,
      capacity: () => route.backend.models().find((model) => model.name === route.model.name)?.limits.parallel ?? 1,
      fairnessKey: record.fairnessKey,
      priority: record.response.priority,
      run: () => run.execute(route),
      onPosition: (position) => run.announce({ kind: "queued", position }),
    });
    void run.done.then(withdraw);
    observer.responseCreated?.(record.response);
  }

  /** What the full queue refused leaves nothing behind. */
  async #refuseAccepted(id: string, lease: { release(): Promise<void> }): Promise<void> {
    this.#runs.delete(id);
    this.#parts.log.drop(id);
    await lease.release();
  }

  #owned(id: string, run: Run, { model }: ResolvedModel, withoutEffect: readonly string[]): OwnedResponse {
    const { log } = this.#parts;
    return {
      id,
      model,
      withoutEffect,
      done: run.done,
      read: () => log.read(id, { after: 0, visibility: "live" }),
      ownerLeft: () => this.#runs.get(id)?.owner.left(),
    };
  }

  async #applyCancel(id: string): Promise<void> {
    const reason = (await this.#parts.store.get(id))?.cancelRequested;
    if (reason !== undefined) this.#runs.get(id)?.run.cancel(reason);
  }

  async #forget(id: string): Promise<void> {
    this.#retention.forget(id);
    this.#parts.log.drop(id);
    await this.#parts.store.delete(id);
  }
}
