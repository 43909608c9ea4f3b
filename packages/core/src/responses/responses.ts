import { type Caller, maySee, type Principal } from "../auth/principal.ts";
import { type Catalog, laneOf, type ResolvedModel, type Route } from "../catalog/catalog.ts";
import { forwardRoutes } from "../catalog/forward-routes.ts";
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
import { type Quotas, tokensOf } from "../scheduling/quotas.ts";
import type { Job, ScheduledJob, Scheduler } from "../scheduling/scheduler.ts";
import { unroll } from "./chain.ts";
import { refusePastDeadline } from "./deadline.ts";
import { type Durability, requireDurable } from "./durable.ts";
import { withoutRun } from "./fold.ts";
import { type KeptLog, readKeptLog } from "./kept-log.ts";
import { OwnerWatch } from "./owner-watch.ts";
import { type DoorKind, isTerminal, type Response } from "./response.ts";
import { Retention, type RetentionLimits } from "./retention.ts";
import { findRouteAgain } from "./route-again.ts";
import { Run } from "./run.ts";

export interface ResponsesLimits extends RetentionLimits {
  /** Milliseconds that a response with `onDisconnect: continue` waits for a reader to come back. */
  readonly resumeWindowMs: number;
  /** Milliseconds from acceptance after which every response fails; 0: no default deadline. */
  readonly defaultDeadlineMs: number;
  /** Runs that a background response may have before a stop of the service ends it. */
  readonly attempts: number;
}

export interface ResponsesParts {
  readonly catalog: Catalog;
  readonly scheduler: Scheduler;
  readonly quotas: Quotas;
  readonly log: EventLog;
  readonly store: Store;
  readonly storage: Durability;
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
  /** Absent: no connection owns it, as it is with background responses. */
  owner?: OwnerWatch;
  /** Keeps it as it is now. */
  readonly put: (changed: Response) => Promise<void>;
  /** Resolves when it is kept for the first time. */
  kept?: Promise<void>;
  job?: ScheduledJob;
  /** It was deleted: its end is not kept. */
  isForgotten?: true;
}

/** How a run comes to be. */
interface RunMaking {
  /** Unique part of the id. */
  readonly x: string;
  readonly record: ResponseRecord;
  readonly delivery: Delivery;
  readonly lease: Lease;
  /** What an earlier process left. */
  readonly kept?: KeptLog;
}

/** All responses, whatever door they came through (LMSP §5). */
export class Responses {
  readonly #parts: ResponsesParts;
  readonly #runs = new Map<string, LiveResponse>();
  readonly #retention: Retention;
  readonly #unsubscribe: () => void;
  /** Ends that are being kept. */
  readonly #settling = new Set<Promise<void>>();
  #draining = false;

  constructor(parts: ResponsesParts) {
    this.#parts = parts;
    this.#retention = new Retention(parts.clock, parts.limits, (id) => this.#detach(this.#forget(id)));
    this.#unsubscribe = parts.bus.subscribe("response.cancel", (id) => this.#detach(this.#applyCancel(id)));
  }

  /**
   * Accepts a request: checked, admitted, queued; its first event is in the log when this resolves.
   * A background response is kept by then: it survives the process, and no connection owns it.
   * @param delivery how its maker reads it. @default "events"
   * @param x unique part of its id. @default a fresh one
   * @throws CoreError invalid-request, model-not-found, unsupported-capability, forbidden, not-found, rate-limited,
   * quota-exceeded, overloaded, deadline-exceeded, draining, insufficient-storage.
   */
  async create(
    request: ResponseRequest,
    caller: Caller,
    door: DoorKind,
    delivery: Delivery = "events",
    x: string = this.#parts.ids.unique(),
  ): Promise<OwnedResponse> {
    this.#refuseWhenDraining();
    validateRequest(request);
    if (request.background) requireDurable(this.#parts.storage, "background responses");
    const prepared = await this.#prepare(request.background ? { ...request, store: true } : request, caller.principal);
    const id = `resp_${x}`;
    const { quota } = caller;
    const place = quota === undefined ? undefined : await this.#parts.quotas.take(quota);
    const lease = await this.#parts.leases.acquire(id);
    let run: Run;
    try {
      if (lease === undefined) throw new CoreError("internal", `The fresh id ${id} is taken.`);
      run = this.#admit(x, prepared, { caller, door, delivery, lease });
    } catch (error) {
      place?.giveBack();
      await lease?.release();
      throw error;
    }
    if (place !== undefined) void run.done.then(({ usage }) => place.end(tokensOf(usage)));
    if (request.background) await this.#keepAccepted(run);
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
    if (!live.run.hasEnded) await live.put(changed);
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
    const { log } = this.#parts;
    const record = await this.get(id, principal);
    const { request, response } = record;
    if (log.extent(response.id) === undefined) await log.recall(response.id);
    this.#endLog(record);
    const extent = log.extent(response.id);
    if (extent === undefined) {
      throw new CoreError("events-expired", "The events are no longer kept; read the response itself.");
    }
    if (after >= extent.last && extent.ended) {
      // What it saw before a crash went beyond what was kept: it still has to hear of the end (LMSP §6).
      const isCut = after > extent.last && response.problem?.code === "interrupted";
      return isCut ? log.read(response.id, { after: extent.last - 1, visibility: "live" }) : undefined;
    }
    if (after > extent.last) {
      throw new CoreError("invalid-request", `The last event so far is ${extent.last}, not ${after}.`, {
        param: "after",
        limit: extent.last,
        requested: after,
      });
    }
    const reader = log.read(response.id, { after, visibility: visibilityOf(request) });
    return this.#runs.get(response.id)?.owner?.watched(reader) ?? reader;
  }

  /** Calls the listener with the id of each response that was made, started, changed or ended; the returned function ends that. */
  onChange(listener: (id: string) => void): () => void {
    return this.#parts.bus.subscribe("response.changed", listener);
  }

  /** A crash may leave a log without the end that the record has: nobody else would write it. */
  #endLog({ request, response, epoch }: ResponseRecord): void {
    const { log } = this.#parts;
    const { id, status, createdAt, finishedAt = createdAt } = response;
    const extent = log.extent(id);
    if (extent === undefined || extent.ended || status === "queued" || status === "in_progress") return;
    if (this.#runs.has(id)) return;
    log.open(id, epoch + 1, { isDurable: request.store });
    const type = `response.${status}` as const;
    log.append(id, epoch + 1, extent.last, [{ type, atMs: Math.max(0, finishedAt - createdAt), response }]);
  }

  /** Responses that are queued or run here. */
  get active(): number {
    return this.#runs.size;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  /**
   * Takes up what an earlier process left, oldest first: background responses wait or run again, the others have ended
   * as `interrupted`. Resolves when everything is in its place; runtimes are waited for afterwards.
   */
  async recover(): Promise<void> {
    for (const { response } of await this.#parts.store.unfinished()) {
      try {
        await this.#recoverOne(response.id);
      } catch (error) {
        this.#tellFault(error);
      }
    }
  }

  /**
   * Takes nothing new and lets what runs end within the limit. The rest ends as `interrupted`, but background responses
   * in a durable storage go on at the next start.
   */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    const live = [...this.#runs.values()];
    for (const each of live) if (this.#goesOn(each.run) && each.job?.withdraw() !== false) this.#suspend(each);
    await within(this.#parts.clock, limitMs, Promise.all(live.map(({ run }) => run.done)));
    for (const each of live) {
      const { run } = each;
      if (this.#goesOn(run)) this.#suspend(each);
      else run.fail(new CoreError("interrupted", "The service stopped before the answer was complete; send it again."));
    }
    await Promise.all([...live.map(({ run }) => run.done), ...this.#settling]);
    this.#unsubscribe();
    this.#retention.close();
  }

  #suspend({ run, put }: LiveResponse): void {
    if (run.hasEnded) return;
    run.suspend();
    const kept = put(run.response).catch((error: unknown) => this.#tellFault(error));
    this.#settling.add(kept);
  }

  #goesOn({ isBackground }: Run): boolean {
    return isBackground && this.#parts.storage.isDurable;
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
    const [route] = forwardRoutes(resolved, request.via);
    if (route === undefined) throw new CoreError("internal", `'${resolved.model.id}' has no runtime.`);
    const { lane, capacity } = laneOf(route);
    const { principal, fairnessKey } = caller;
    const place = { lane, capacity, fairnessKey, priority: response.priority };
    scheduler.requireRoom(place);
    const bytes = estimateRequestBytes(request);
    if (!log.hasRoom || !this.#retention.makeRoom(bytes)) {
      throw new CoreError("overloaded", "The memory for responses is full; try again when some have ended.", {
        retryAfterMs: 1_000,
      });
    }
    this.#retention.hold(response.id, bytes);
    const record = { request, owner: principal.id, fairnessKey, epoch: lease.epoch, response };
    const run = this.#makeRun({ x, record, delivery, lease });
    observer.responseCreated?.(response);
    this.#submit(run, route, place);
    return run;
  }

  #submit(run: Run, route: Route, place: Omit<Job, "run" | "onPosition">): void {
    const { lane, capacity, fairnessKey, priority, wasAccepted = false } = place;
    const job = this.#parts.scheduler.submit({
      lane,
      capacity,
      fairnessKey,
      priority,
      wasAccepted,
      run: () => run.execute(route),
      onPosition: (position, expectedWaitMs) =>
        run.announce({ kind: "queued", position, ...(expectedWaitMs === undefined ? {} : { expectedWaitMs }) }),
    });
    const live = this.#runs.get(run.response.id);
    if (live !== undefined) live.job = job;
    this.#detach(run.done.then(job.withdraw));
  }

  /** Accepted means kept (LMSP §7). @throws CoreError what the store says; the response has ended then. */
  async #keepAccepted(run: Run): Promise<void> {
    try {
      await this.#runs.get(run.response.id)?.kept;
    } catch (error) {
      run.fail(error);
      throw error;
    }
  }

  async #recoverOne(id: string): Promise<void> {
    const { store, log, leases, limits, observer } = this.#parts;
    const lease = await leases.acquire(id, (await store.get(id))?.epoch);
    if (lease === undefined) return;
    const kept = await readKeptLog(log, id);
    const record = await store.get(id);
    if (record === undefined || isTerminal(record.response)) return lease.release();
    if (kept.terminal !== undefined) {
      // It had ended; only the record was not written any more.
      await store.put({ ...record, response: kept.terminal.response });
      return lease.release();
    }
    const { request, response, cancelRequested } = record;
    const hasRun = kept.hasRun || response.status === "in_progress";
    const before = withoutRun(response);
    const attempt = hasRun ? before.attempt + 1 : before.attempt;
    // One that waits has had no run that a stop has cut since it was counted.
    const mayRun = !hasRun || attempt <= limits.attempts;
    const goesOn = request.background && cancelRequested === undefined && mayRun;
    const taken = { ...record, epoch: lease.epoch, response: goesOn ? { ...before, attempt } : before };
    if (goesOn) await store.put(taken);
    this.#retention.hold(id, estimateRequestBytes(request));
    const run = this.#makeRun({ x: uniquePart(id), record: taken, delivery: "events", lease, kept });
    observer.responseCreated?.(before);
    if (cancelRequested !== undefined) run.cancel(cancelRequested);
    else if (!goesOn) run.fail(interruptedBy(request, before));
    else {
      if (hasRun) run.restart(attempt);
      this.#detach(this.#runAgain(run, taken));
    }
  }

  /** Puts it into the queue when its model is there. Nothing is refused that was accepted before. */
  async #runAgain(run: Run, { request, fairnessKey }: ResponseRecord): Promise<void> {
    try {
      const { model, priority } = run.response;
      const { catalog, clock } = this.#parts;
      const route = await findRouteAgain(catalog, clock, model, request.via);
      if (run.hasEnded) return;
      this.#submit(run, route, { ...laneOf(route), fairnessKey, priority, wasAccepted: true });
    } catch (error) {
      run.fail(error);
    }
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
    if (request.background) response.background = true;
    if (deadlineMs !== undefined) response.deadlineMs = deadlineMs;
    if (previousResponseId !== undefined) response.previousResponseId = previousResponseId;
    return response;
  }

  #makeRun({ x, record, delivery, lease, kept }: RunMaking): Run {
    const { log, clock, observer, store, limits, bus } = this.#parts;
    const { request, response } = record;
    const { id } = response;
    const put = (changed: Response): Promise<void> => {
      const kept = store.put({ ...record, response: changed });
      bus.publish("response.changed", id);
      return kept;
    };
    const run = new Run({
      x,
      request,
      delivery,
      response,
      ...(kept === undefined ? {} : { kept }),
      lease,
      log,
      clock,
      observer,
      onStart: (started) => this.#detach(put(started)),
      onEnd: (ended) => this.#settle(run, ended, { record, delivery, lease }),
    });
    const live: LiveResponse = { run, put };
    if (!request.background) {
      const { onDisconnect: policy } = request;
      live.owner = new OwnerWatch({ run, policy, clock, windowMs: limits.resumeWindowMs, log, id });
    }
    this.#runs.set(id, live);
    if (kept === undefined) {
      live.kept = put(response);
      this.#detach(live.kept);
    }
    return run;
  }

  /** Keeps the end. Of a background response the events first: what its readers see is on disk, its end among it. */
  #settle(run: Run, ended: Response, { record, delivery, lease }: Omit<RunMaking, "x">): void {
    const { log, storage } = this.#parts;
    const { id } = ended;
    const { store: isStored, background: isBackground } = record.request;
    const live = this.#runs.get(id);
    live?.owner?.close();
    const keep = async (): Promise<void> => {
      this.#runs.delete(id);
      if (!live?.isForgotten) await live?.put(ended);
    };
    if (isBackground && storage.isDurable) {
      // A log that can't be written does not hinder the record.
      const told = log.committed(id, run.sequence).catch((error: unknown) => this.#tellFault(error));
      const settled = told.then(keep).catch((error: unknown) => this.#tellFault(error));
      this.#settling.add(settled);
      this.#detach(settled.then(() => this.#settling.delete(settled)));
    } else this.#detach(keep());
    // What is on disk is looked after there.
    if (isStored && storage.isDurable && storage.keepsContent) this.#retention.release(id);
    // After `keep`: what is larger than the budget by itself is forgotten at once.
    else this.#retention.keep(id, isStored, estimateOutputBytes(ended.output));
    // Nobody has watched it, and its events say nothing that the response does not.
    if (delivery === "whole" && !isStored && log.extent(id)?.readers === 0) log.drop(id);
    this.#detach(lease.release());
  }

  #owned(id: string, run: Run, { request, resolved, withoutEffect }: Prepared): OwnedResponse {
    const { log } = this.#parts;
    return {
      id,
      model: resolved.model,
      withoutEffect,
      done: run.done,
      read: () => log.read(id, { after: 0, visibility: visibilityOf(request) }),
      ownerLeft: () => this.#runs.get(id)?.owner?.left(),
    };
  }

  async #applyCancel(id: string): Promise<void> {
    const reason = (await this.#parts.store.get(id))?.cancelRequested;
    if (reason !== undefined) this.#runs.get(id)?.run.cancel(reason);
  }

  async #forget(id: string): Promise<void> {
    const live = this.#runs.get(id);
    if (live !== undefined) live.isForgotten = true;
    this.#retention.release(id);
    this.#parts.log.drop(id);
    await this.#parts.store.delete(id);
  }

  #tellFault(error: unknown): void {
    this.#parts.observer.fault?.(error);
  }

  #detach(promise: Promise<unknown>): void {
    detach(promise, this.#parts.observer.fault);
  }
}

/** Readers of what runs again after a crash see nothing that the crash could take back (LMSP §6). */
function visibilityOf({ background }: ResponseRequest): "live" | "committed" {
  return background ? "committed" : "live";
}

function interruptedBy({ background }: ResponseRequest, { attempt }: Response): CoreError {
  const detail = background
    ? `The service stopped under each of its ${attempt} runs.`
    : "The service stopped before the answer was complete; send it again.";
  return new CoreError("interrupted", detail);
}
