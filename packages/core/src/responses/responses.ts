import { type Caller, maySee, type Principal } from "../auth/principal.ts";
import { type Catalog, laneOf, type ResolvedModel } from "../catalog/catalog.ts";
import { requireAvailable, requireCapabilities } from "../catalog/require-capabilities.ts";
import { settleRequest } from "../catalog/settle.ts";
import { resolveFor, usableModels } from "../catalog/usable-models.ts";
import { detach, within } from "../detach.ts";
import { estimateOutputBytes, estimateRequestBytes } from "../memory/estimate-bytes.ts";
import type { Delivery } from "../ports/backend.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventLog, LogReader } from "../ports/event-log.ts";
import type { Ids } from "../ports/ids.ts";
import type { Lease, Leases } from "../ports/lease.ts";
import type { Observer } from "../ports/observer.ts";
import type { Page, ResponseQuery, ResponseRecord, Store } from "../ports/store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { ResponseChanges, ResponseRequest } from "../request/request.ts";
import { validateChanges, validateRequest } from "../request/validate.ts";
import type { ScheduledJob, Scheduler } from "../scheduling/scheduler.ts";
import { unroll } from "./chain.ts";
import { refusePastDeadline } from "./deadline.ts";
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

/** A request that has passed every check that may have to wait. */
interface Prepared {
  /** Fitted to its model, with the conversation before it. */
  readonly request: ResponseRequest;
  readonly resolved: ResolvedModel;
  readonly withoutEffect: readonly string[];
  readonly previousResponseId?: string;
}

/** Who makes a response, and how. */
interface Making {
  readonly caller: Caller;
  readonly door: DoorKind;
  readonly delivery: Delivery;
  readonly lease: Lease;
}

/** A response that is queued or runs here. */
interface LiveResponse {
  readonly run: Run;
  readonly owner: OwnerWatch;
  /** Keeps it as it is now. */
  readonly put: (changed: Response) => void;
  job?: ScheduledJob;
}

/** All responses, whatever door they came through (LMSP §5). */
export class Responses {
  readonly #parts: ResponsesParts;
  readonly #runs = new Map<string, LiveResponse>();
  readonly #retention: Retention;
  readonly #unsubscribe: () => void;
  #draining = false;

  constructor(parts: ResponsesParts) {
    this.#parts = parts;
    this.#retention = new Retention(parts.clock, parts.limits, (id) => this.#detach(this.#forget(id)));
    this.#unsubscribe = parts.bus.subscribe("response.cancel", (id) => this.#detach(this.#applyCancel(id)));
  }

  /**
   * Accepts a request: checked, admitted, queued; its first event is in the log when this resolves.
   * @param delivery how its maker reads it. @default "events"
   * @throws CoreError invalid-request, model-not-found, unsupported-capability, forbidden, not-found, overloaded,
   * deadline-exceeded, draining.
   */
  async create(
    request: ResponseRequest,
    caller: Caller,
    door: DoorKind,
    delivery: Delivery = "events",
  ): Promise<OwnedResponse> {
    this.#refuseWhenDraining();
    validateRequest(request);
    const prepared = await this.#prepare(request, caller.principal);
    const x = this.#parts.ids.unique();
    const id = `resp_${x}`;
    const lease = await this.#parts.leases.acquire(id);
    if (lease === undefined) throw new CoreError("internal", `The fresh id ${id} is taken.`);
    let run: Run;
    try {
      run = this.#admit(x, prepared, { caller, door, delivery, lease });
    } catch (error) {
      await lease.release();
      throw error;
    }
    const { supersedes } = request;
    if (supersedes !== undefined) await this.#supersede(supersedes, caller.principal);
    return this.#owned(id, run, prepared);
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

  /**
   * Changes one that is queued or runs: a higher or lower place in the queue, another deadline, a bound of its output.
   * The caller's top priority holds.
   * @throws CoreError not-found; invalid-request; deadline-exceeded for a deadline that has passed, which leaves the
   * response as it is; conflict when it has ended.
   */
  async change(id: string, changes: ResponseChanges, principal: Principal): Promise<Response> {
    validateChanges(changes);
    const { response } = await this.get(id, principal);
    const live = this.#runs.get(response.id);
    if (live === undefined || live.run.hasEnded) {
      throw new CoreError("conflict", `The response '${id}' has ended and can't be changed.`, { param: "id" });
    }
    refusePastDeadline(changes.deadlineMs, this.#parts.clock.now());
    const { priority: wanted } = changes;
    const priority = wanted === undefined ? undefined : Math.min(wanted, principal.topPriority ?? wanted);
    if (priority !== undefined) live.job?.changePriority(priority);
    const changed = live.run.change(priority === undefined ? changes : { ...changes, priority });
    if (!live.run.hasEnded) live.put(changed);
    return changed;
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
    await within(this.#parts.clock, limitMs, ended);
    for (const { run } of [...this.#runs.values()]) {
      run.fail(new CoreError("interrupted", "The service stopped before the answer was complete; send it again."));
    }
    await ended;
    this.#unsubscribe();
    this.#retention.close();
  }

  #refuseWhenDraining(): void {
    if (!this.#draining) return;
    throw new CoreError("draining", "The service is stopping and takes no new requests.", { retryAfterMs: 5_000 });
  }

  /** Everything that may have to wait for a store or a backend, before anything is begun. */
  async #prepare(request: ResponseRequest, principal: Principal): Promise<Prepared> {
    const { catalog } = this.#parts;
    await catalog.ready;
    const resolved = resolveFor(catalog, request.model, principal);
    requireAvailable(resolved.model);
    const unrolled = await this.#unrollChain(request, principal);
    const settled = settleRequest(unrolled, resolved.model);
    requireCapabilities(resolved.model, settled.request, () => usableModels(catalog, principal));
    if (request.supersedes !== undefined) await this.#requireOwn(request.supersedes, principal);
    const { previousResponseId: previous } = request;
    if (previous === undefined) return { resolved, ...settled };
    return { resolved, ...settled, previousResponseId: `resp_${uniquePart(previous)}` };
  }

  /** What is gone by now has nothing left to cancel. */
  async #supersede(id: string, principal: Principal): Promise<void> {
    try {
      await this.cancel(id, principal, "superseded");
    } catch (error) {
      if (!(error instanceof CoreError && error.code === "not-found")) throw error;
    }
  }

  async #requireOwn(id: string, principal: Principal): Promise<void> {
    const record = await this.#parts.store.get(`resp_${uniquePart(id)}`);
    if (record?.owner === principal.id) return;
    throw new CoreError("not-found", `There is no response '${id}' of yours.`, { param: "supersedes" });
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

  /** From the checks to the queue nothing waits, so that what was checked still holds when it is queued. */
  #admit(x: string, prepared: Prepared, { caller, door, delivery, lease }: Making): Run {
    const { scheduler, clock, observer, log } = this.#parts;
    const { request, resolved } = prepared;
    const response = this.#firstResponse(`resp_${x}`, prepared, caller.principal, door);
    this.#refuseWhenDraining();
    refusePastDeadline(response.deadlineMs, clock.now());
    const [route] = resolved.routes;
    if (route === undefined) throw new CoreError("internal", `'${resolved.model.id}' has no runtime.`);
    const place = { ...laneOf(route), fairnessKey: caller.fairnessKey, priority: response.priority };
    scheduler.requireRoom(place);
    const bytes = estimateRequestBytes(request);
    if (!log.hasRoom || !this.#retention.makeRoom(bytes)) {
      throw new CoreError("overloaded", "The memory for responses is full; try again when some have ended.", {
        retryAfterMs: 1_000,
      });
    }
    this.#retention.hold(response.id, bytes);
    const { principal, fairnessKey } = caller;
    const record = { request, owner: principal.id, fairnessKey, epoch: lease.epoch, response };
    const run = this.#makeRun(x, record, delivery, lease);
    observer.responseCreated?.(response);
    const job = scheduler.submit({
      ...place,
      run: () => run.execute(route),
      onPosition: (position, expectedWaitMs) =>
        run.announce({ kind: "queued", position, ...(expectedWaitMs === undefined ? {} : { expectedWaitMs }) }),
    });
    const live = this.#runs.get(response.id);
    if (live !== undefined) live.job = job;
    this.#detach(run.done.then(job.withdraw));
    return run;
  }

  #firstResponse(id: string, prepared: Prepared, principal: Principal, door: DoorKind): Response {
    const { request, resolved, previousResponseId } = prepared;
    const { clock, limits } = this.#parts;
    const createdAt = clock.now();
    const deadlineMs =
      request.deadlineMs ?? (limits.defaultDeadlineMs > 0 ? createdAt + limits.defaultDeadlineMs : undefined);
    // Not by spreading: one is made for every request, and a literal has one shape.
    const response: { -readonly [Member in keyof Response]: Response[Member] } = {
      id,
      status: "queued",
      model: resolved.model.id,
      door,
      output: [],
      finishes: [],
      timings: {},
      attempt: 1,
      priority: Math.min(request.priority, principal.topPriority ?? request.priority),
      createdAt,
      metadata: request.metadata,
    };
    if (deadlineMs !== undefined) response.deadlineMs = deadlineMs;
    if (previousResponseId !== undefined) response.previousResponseId = previousResponseId;
    return response;
  }

  #makeRun(x: string, record: ResponseRecord, delivery: Delivery, lease: Lease): Run {
    const { log, clock, observer, store, limits } = this.#parts;
    const { request, response } = record;
    const put = (changed: Response): void => this.#detach(store.put({ ...record, response: changed }));
    const run = new Run({
      x,
      request,
      delivery,
      response,
      lease,
      log,
      clock,
      observer,
      onStart: put,
      onEnd: (ended) => {
        this.#runs.get(ended.id)?.owner.close();
        this.#runs.delete(ended.id);
        put(ended);
        // Last: what is larger than the budget by itself is forgotten at once.
        this.#retention.keep(ended.id, request.store, estimateOutputBytes(ended.output));
        // Nobody has watched it, and its events say nothing that the response does not.
        if (delivery === "whole" && !request.store && log.extent(ended.id)?.readers === 0) log.drop(ended.id);
        this.#detach(lease.release());
      },
    });
    const { id } = response;
    const owner = new OwnerWatch({
      run,
      policy: request.onDisconnect,
      clock,
      windowMs: limits.resumeWindowMs,
      log,
      id,
    });
    this.#runs.set(id, { run, owner, put });
    put(response);
    return run;
  }

  #owned(id: string, run: Run, { resolved, withoutEffect }: Prepared): OwnedResponse {
    const { log } = this.#parts;
    return {
      id,
      model: resolved.model,
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
    this.#retention.release(id);
    this.#parts.log.drop(id);
    await this.#parts.store.delete(id);
  }

  #detach(promise: Promise<unknown>): void {
    detach(promise, this.#parts.observer.fault);
  }
}
