import { type Caller, maySee, type Principal } from "../auth/principal.ts";
import { detach, within } from "../detach.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Observer } from "../ports/observer.ts";
import type { Storage } from "../ports/storage.ts";
import type { Page } from "../ports/store.ts";
import type { BatchLine, TaskKind, TaskRecord } from "../ports/task-store.ts";
import { CoreError } from "../problems/core-error.ts";
import { requireDurable } from "../responses/durable.ts";
import type { Responses } from "../responses/responses.ts";
import type { TaskExecutor } from "./executor.ts";
import { listTasks, type TaskListQuery } from "./list-tasks.ts";
import { type Task, taskOfResponse } from "./task.ts";
import { TaskReader } from "./task-reader.ts";
import { TaskRun } from "./task-run.ts";

export interface TasksLimits {
  /** Tasks that may wait, of all kinds together. */
  readonly tasksQueued: number;
  /** Milliseconds that a task can be read after its end. */
  readonly taskRetentionMs: number;
  /** Runs that one task or background response may have before a stop of the service ends it. */
  readonly attempts: number;
}

export interface TasksParts {
  readonly storage: Storage;
  readonly responses: Responses;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  readonly limits: TasksLimits;
}

/** Tasks of one kind in this process. */
interface Lane {
  readonly executor: TaskExecutor;
  readonly waiting: TaskRun[];
  readonly running: Map<TaskRun, Promise<void>>;
}

/** Milliseconds that work which is cut has at least, to stop and be written. */
const suspendMs = 2_000;
/** Milliseconds between two looks for tasks whose retention is over. */
const sweepMs = 60_000;

/** Work that outlives its request (LMSP §7). A background response is a task, too, and is shown beside the others. */
export class Tasks {
  readonly #parts: TasksParts;
  readonly #lanes = new Map<TaskKind, Lane>();
  readonly #runs = new Map<string, TaskRun>();
  readonly #unsubscribe: () => void;
  /** Set from the first task on. */
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(parts: TasksParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.bus.subscribe("task.cancel", (id) => this.#detach(this.#applyCancel(id)));
  }

  /** Offers a kind of task. Once for each kind, before the first request. */
  register(executor: TaskExecutor): void {
    this.#lanes.set(executor.kind, { executor, waiting: [], running: new Map() });
  }

  /** Kinds that are offered, background responses first. */
  get kinds(): readonly (TaskKind | "response")[] {
    return ["response", ...this.#lanes.keys()];
  }

  /**
   * Accepts a task: it is kept when this resolves, and runs at least once whatever happens to the process.
   * @param request as the kind's executor takes it.
   * @param x unique part of its id. @default a fresh one
   * @throws CoreError draining, insufficient-storage, overloaded, unsupported-operation, and what the executor refuses.
   */
  async create(kind: TaskKind, request: unknown, caller: Caller, x: string = this.#parts.ids.unique()): Promise<Task> {
    const { storage, clock } = this.#parts;
    const lane = this.#lane(kind);
    this.#refuseWhenDraining();
    requireDurable(storage, kind === "batch" ? "batches" : undefined);
    this.#requireRoom();
    const accepted = await (lane.executor.accept?.(request, caller) ?? request);
    const record: TaskRecord = {
      id: `task_${x}`,
      kind,
      owner: caller.principal.id,
      fairnessKey: caller.fairnessKey,
      request: accepted,
      state: "queued",
      attempt: 1,
      createdAt: clock.now(),
    };
    await storage.tasks.put(record);
    this.#sweepLater();
    this.#enqueue(lane, record, { lastSequence: 0, isRestart: false });
    return record;
  }

  /** @throws CoreError not-found, also for what the principal may not see. */
  async get(id: string, principal: Principal): Promise<Task> {
    if (id.startsWith("resp_")) {
      const record = await this.#parts.responses.get(id, principal).catch(() => undefined);
      if (record?.request.background) return taskOfResponse(record);
    } else {
      const record = await this.#parts.storage.tasks.head(id);
      if (record !== undefined && maySee(principal, record.owner)) return record;
    }
    throw new CoreError("not-found", `There is no task '${id}'.`, { param: "id" });
  }

  /** Calls the listener with the id of each task that changed or is gone; the returned function ends that. */
  onChange(listener: (id: string) => void): () => void {
    return this.#parts.bus.subscribe("task.changed", listener);
  }

  /** Newest first, background responses among them; without `admin`, own ones only. */
  list(query: TaskListQuery, principal: Principal): Promise<Page<Task>> {
    const owner = principal.scopes.has("admin") ? query.owner : principal.id;
    const own = { ...query, ...(owner === undefined ? {} : { owner }) };
    return listTasks(own, this.#parts.storage.tasks, (responses) => this.#parts.responses.list(responses, principal));
  }

  /**
   * A reader after the given sequence, for a task that is no response; undefined when it has ended and nothing follows.
   * @throws CoreError not-found; invalid-request for a sequence that does not exist yet.
   */
  async events(id: string, after: number, principal: Principal): Promise<TaskReader | undefined> {
    const { storage, bus, clock } = this.#parts;
    const task = await this.get(id, principal);
    if (after > 0) {
      const [last, ...more] = await storage.tasks.events(id, after - 1);
      if (task.finishedAt !== undefined && more.length === 0) return undefined;
      if (last === undefined) {
        throw new CoreError("invalid-request", `The task has no event ${after} yet.`, {
          param: "after",
          requested: after,
        });
      }
    }
    return new TaskReader({ id, after, store: storage.tasks, bus, clock });
  }

  /**
   * Finished lines of a batch in order, from an index on, without a gap: they end at the first line that is not done.
   * @throws CoreError not-found; conflict for a task that is no batch.
   */
  async output(id: string, from: number, limit: number, principal: Principal): Promise<readonly BatchLine[]> {
    const task = await this.get(id, principal);
    if (task.kind !== "batch") {
      throw new CoreError("conflict", `Only batches have an output; '${id}' is of the kind ${task.kind}.`);
    }
    const lines = await this.#parts.storage.tasks.lines(id, from, limit);
    const gap = lines.findIndex(({ index }, place) => index !== from + place);
    return gap < 0 ? lines : lines.slice(0, gap);
  }

  /** Idempotent: what has ended stays as it is. @throws CoreError not-found */
  async cancel(id: string, principal: Principal, reason = "requested"): Promise<Task> {
    const { storage, responses, bus } = this.#parts;
    const task = await this.get(id, principal);
    if (task.finishedAt !== undefined) return task;
    if (task.kind === "response") {
      await responses.cancel(id, principal, reason);
    } else {
      await storage.tasks.requestCancel(id, reason);
      await this.#cancelHere(id, reason);
      bus.publish("task.cancel", id);
    }
    return this.get(id, principal);
  }

  /** Cancels it when it still runs, then forgets it. @throws CoreError not-found */
  async delete(id: string, principal: Principal): Promise<void> {
    const { storage, responses, bus } = this.#parts;
    const task = await this.get(id, principal);
    if (task.kind === "response") return responses.delete(id, principal);
    await this.#cancelHere(id, "requested");
    await storage.tasks.delete(id);
    bus.publish("task.changed", id);
  }

  /** Takes up what an earlier process left: waiting ones wait again, running ones run again. Oldest first. */
  async recover(): Promise<void> {
    this.#sweepLater();
    const { storage, limits } = this.#parts;
    for (const record of await storage.tasks.unfinished()) {
      if (this.#runs.has(record.id)) continue;
      const lane = this.#lanes.get(record.kind);
      const lastSequence = (await storage.tasks.events(record.id, 0)).at(-1)?.sequence ?? 0;
      const wasRunning = record.state === "running";
      const next = wasRunning ? { ...record, attempt: record.attempt + 1 } : record;
      const isRestart = record.startedAt !== undefined;
      if (lane === undefined) {
        const error = new CoreError(
          "unsupported-operation",
          `The service no longer offers tasks of the kind ${record.kind}.`,
        );
        await this.#endUnrun(record, lastSequence, error);
      } else if (record.cancelRequested !== undefined) {
        const { cancelRequested: reason } = record;
        const error = new CoreError("cancelled", "It was cancelled on request.", { reason });
        await this.#endUnrun(record, lastSequence, error);
      } else if (next.attempt > limits.attempts) {
        const error = new CoreError("interrupted", `The service stopped under each of its ${record.attempt} runs.`);
        await this.#endUnrun(record, lastSequence, error);
      } else {
        this.#enqueue(lane, next, { lastSequence, isRestart });
      }
    }
  }

  /** Tasks that wait or run here. */
  get active(): number {
    return this.#runs.size;
  }

  /** Takes nothing new and cuts what runs; what is kept goes on at the next start. */
  async drain(limitMs: number): Promise<void> {
    this.#isDraining = true;
    this.#unsubscribe();
    this.#stopSweep?.();
    const settled: Promise<void>[] = [];
    for (const lane of this.#lanes.values()) {
      for (const [run, end] of lane.running) {
        run.suspend();
        settled.push(end);
      }
    }
    await within(this.#parts.clock, Math.max(limitMs, suspendMs), Promise.all(settled));
  }

  #lane(kind: TaskKind): Lane {
    const lane = this.#lanes.get(kind);
    if (lane !== undefined) return lane;
    throw new CoreError("unsupported-operation", `This service offers no tasks of the kind ${kind}.`, {
      param: "kind",
    });
  }

  #refuseWhenDraining(): void {
    if (!this.#isDraining) return;
    throw new CoreError("draining", "The service is stopping and takes no new tasks.", { retryAfterMs: 5_000 });
  }

  #requireRoom(): void {
    const { tasksQueued } = this.#parts.limits;
    let waiting = 0;
    for (const lane of this.#lanes.values()) waiting += lane.waiting.length;
    if (waiting < tasksQueued) return;
    throw new CoreError("overloaded", `${tasksQueued} tasks wait already; try again when some have ended.`, {
      limit: tasksQueued,
      retryAfterMs: 5_000,
    });
  }

  #enqueue(lane: Lane, record: TaskRecord, from: { readonly lastSequence: number; readonly isRestart: boolean }): void {
    const run = this.#makeRun(lane.executor, record, from);
    this.#runs.set(record.id, run);
    lane.waiting.push(run);
    this.#parts.bus.publish("task.changed", record.id);
    this.#startNext(lane);
  }

  #makeRun(
    executor: TaskExecutor,
    record: TaskRecord,
    from: { readonly lastSequence: number; readonly isRestart: boolean },
  ): TaskRun {
    const { storage, bus, clock, observer } = this.#parts;
    return new TaskRun(record, { executor, store: storage.tasks, bus, clock, observer, ...from });
  }

  #startNext(lane: Lane): void {
    while (!this.#isDraining && lane.running.size < lane.executor.concurrency) {
      const run = lane.waiting.shift();
      if (run === undefined) return;
      const end = run.execute().then(() => {
        lane.running.delete(run);
        this.#runs.delete(run.record.id);
        this.#startNext(lane);
      });
      lane.running.set(run, end);
    }
  }

  /** One that waits ends at once; one that runs ends when its work has stopped. */
  async #cancelHere(id: string, reason: string): Promise<void> {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    run.cancel(reason);
    const lane = this.#lane(run.executor.kind);
    const place = lane.waiting.indexOf(run);
    if (place < 0) return;
    lane.waiting.splice(place, 1);
    await run.execute();
    this.#runs.delete(id);
  }

  async #applyCancel(id: string): Promise<void> {
    const reason = (await this.#parts.storage.tasks.head(id))?.cancelRequested;
    if (reason !== undefined) await this.#cancelHere(id, reason);
  }

  async #endUnrun(record: TaskRecord, lastSequence: number, error: CoreError): Promise<void> {
    const { storage, bus, clock, observer } = this.#parts;
    const executor: TaskExecutor = { kind: record.kind, concurrency: 1, run: () => Promise.reject(error) };
    const options = { executor, store: storage.tasks, bus, clock, observer, lastSequence, isRestart: false };
    await new TaskRun(record, options).fail(error);
  }

  #sweepLater(): void {
    this.#stopSweep ??= this.#parts.clock.after(sweepMs, () => {
      this.#stopSweep = undefined;
      this.#detach(this.#sweep());
      this.#sweepLater();
    });
  }

  async #sweep(): Promise<void> {
    const { storage, clock, limits, bus } = this.#parts;
    for (const id of await storage.tasks.sweep(clock.now() - limits.taskRetentionMs)) bus.publish("task.changed", id);
  }

  #detach(promise: Promise<unknown>): void {
    detach(promise, this.#parts.observer.fault);
  }
}
