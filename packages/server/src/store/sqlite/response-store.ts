import {
  CoreError,
  comparePlaces,
  cursorOf,
  isTerminal,
  matchesQuery,
  newestFirst,
  type Page,
  problems,
  type ResponseQuery,
  type ResponseRecord,
  readCursor,
  requestDefaults,
  type Store,
} from "@plenum/core";
import type { DatabaseThread, Pending, Source } from "./database-thread.ts";
import type { ResponseRow } from "./thread/responses.ts";

/** A record that memory holds: all that is written of it, and what is not written yet. */
interface LiveRecord {
  record: ResponseRecord;
  /** Something of it is on disk, or on its way there. */
  isOnDisk: boolean;
  /** Its request is on disk. */
  isRequestWritten: boolean;
  waiting: { readonly resolve: () => void; readonly reject: (error: CoreError) => void }[];
}

/**
 * Milliseconds that a response whose text is not kept runs before anything of it is written. Most have ended by then, and
 * what has ended can't be interrupted: it leaves nothing on disk, which spares each short answer its writes.
 */
const youngMs = 500;

/**
 * Responses: memory holds those that run, those whose text is not to be kept, and what is not written yet; the rest is
 * read from disk.
 */
export class SqliteStore implements Store, Source {
  readonly #thread: DatabaseThread;
  readonly #keepsContent: boolean;
  readonly #live = new Map<string, LiveRecord>();
  readonly #dirty = new Set<string>();
  /** Of those whose text is not kept and that are not on disk: when each was new, in that order. */
  readonly #young = new Map<string, number>();
  #growing: ReturnType<typeof setTimeout> | undefined;
  /** Deletions on their way; what comes again under such an id waits for them. */
  readonly #deleting = new Set<string>();

  constructor(thread: DatabaseThread, keepsContent: boolean) {
    this.#thread = thread;
    this.#keepsContent = keepsContent;
    thread.addSource(this);
  }

  put(record: ResponseRecord): Promise<void> {
    const { id } = record.response;
    let live = this.#live.get(id);
    if (live === undefined) {
      live = { record, isOnDisk: false, isRequestWritten: false, waiting: [] };
      this.#live.set(id, live);
    } else live.record = withCancel(record, live.record.cancelRequested);
    if (!this.#isKept(record)) {
      this.#putStub(id, live);
      return Promise.resolve();
    }
    this.#dirty.add(id);
    const written = this.#written(id);
    if (record.request.background) this.#thread.wakeNow();
    else this.#thread.wake();
    return written;
  }

  async get(id: string): Promise<ResponseRecord | undefined> {
    const live = this.#live.get(id);
    if (live !== undefined) return live.record;
    const row = await this.#thread.call("responses.get", id);
    return this.#live.get(id)?.record ?? (row === undefined ? undefined : recordOf(row));
  }

  async list(query: ResponseQuery): Promise<Page<ResponseRecord>> {
    const { cursor, limit, ...filters } = query;
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const listing = { ...filters, limit: limit + 1, ...(after === undefined ? {} : { after }) };
    const rows = await this.#thread.call("responses.list", listing);
    const kept = rows.filter(({ id }) => !this.#live.has(id)).map(recordOf);
    const lowestRow = rows.length > limit ? rows.at(-1) : undefined;
    const lowest = lowestRow && { createdAt: lowestRow.created_at, id: lowestRow.id };
    const live = [...this.#live.values()]
      .map(({ record }) => record)
      .filter((record) => matchesQuery(record, query))
      // What is older belongs to a later page, whose rows were not read.
      .filter(({ response }) => lowest === undefined || comparePlaces(response, lowest) >= 0);
    const page = newestFirst([...live, ...kept], ({ response }) => response, query);
    return page.nextCursor === undefined && lowest !== undefined ? { ...page, nextCursor: cursorOf(lowest) } : page;
  }

  async requestCancel(id: string, reason: string): Promise<boolean> {
    const live = this.#live.get(id);
    if (live === undefined) return this.#thread.call("responses.cancel", { id, reason });
    live.record = withCancel(live.record, live.record.cancelRequested ?? reason);
    if (!this.#isKept(live.record)) {
      this.#putStub(id, live);
      return true;
    }
    this.#dirty.add(id);
    this.#thread.wake();
    if (live.record.request.background && this.#isKept(live.record)) await this.#written(id);
    return true;
  }

  async delete(id: string): Promise<void> {
    const live = this.#live.get(id);
    this.#live.delete(id);
    this.#dirty.delete(id);
    this.#young.delete(id);
    for (const { resolve } of live?.waiting ?? []) resolve();
    if (live?.isOnDisk === false) return;
    this.#deleting.add(id);
    try {
      await this.#thread.call("responses.delete", id);
    } finally {
      this.#deleting.delete(id);
      if (this.#dirty.has(id)) this.#thread.wake();
    }
  }

  async unfinished(): Promise<readonly ResponseRecord[]> {
    const rows = await this.#thread.call("responses.unfinished", undefined);
    return rows.filter(({ id }) => !this.#live.has(id)).map(recordOf);
  }

  /** What the database has let go. */
  forget(id: string): void {
    const live = this.#live.get(id);
    if (live !== undefined && isTerminal(live.record.response) && this.#isKept(live.record)) this.#live.delete(id);
  }

  /** Everything that waits is to be written now: the store is about to close. */
  hurry(): void {
    clearTimeout(this.#growing);
    for (const id of this.#young.keys()) this.#dirty.add(id);
    this.#young.clear();
    this.#thread.wake();
  }

  get isDirty(): boolean {
    return this.#dirty.size > 0;
  }

  collect(into: Pending[], room: number): number {
    let taken = 0;
    for (const id of this.#dirty) {
      if (taken >= room) break;
      if (this.#deleting.has(id)) continue;
      this.#dirty.delete(id);
      const live = this.#live.get(id);
      if (live === undefined) continue;
      const operation = this.#writing(id, live);
      taken += operation.size;
      into.push(operation);
    }
    return taken;
  }

  /** Of a record whose text is not kept. */
  #putStub(id: string, live: LiveRecord): void {
    if (live.isOnDisk || live.record.request.store) {
      this.#dirty.add(id);
      this.#thread.wake();
    } else if (isTerminal(live.record.response)) this.#young.delete(id);
    else if (!this.#young.has(id)) {
      this.#young.set(id, performance.now());
      this.#growing ??= setTimeout(() => this.#grow(), youngMs).unref();
    }
  }

  /** What has run for long enough goes to the disk. */
  #grow(): void {
    this.#growing = undefined;
    const now = performance.now();
    for (const [id, bornAt] of this.#young) {
      const leftMs = bornAt + youngMs - now;
      if (leftMs > 0) {
        this.#growing = setTimeout(() => this.#grow(), leftMs).unref();
        break;
      }
      this.#young.delete(id);
      this.#dirty.add(id);
    }
    if (this.#dirty.size > 0) this.#thread.wake();
  }

  #writing(id: string, live: LiveRecord): Pending {
    const { record, waiting } = live;
    live.isOnDisk = true;
    const isKept = this.#isKept(record);
    live.waiting = [];
    const row = rowOf(record, isKept, isKept && !live.isRequestWritten);
    return {
      name: "responses.put",
      argument: row,
      size: (row.request?.length ?? 0) + (row.response?.length ?? 0) + 500,
      isSynced: isKept && record.request.background,
      done: () => {
        live.isRequestWritten = isKept;
        const isSettled = this.#live.get(id) === live && !this.#dirty.has(id) && isTerminal(live.record.response);
        if (isKept && isSettled) this.#live.delete(id);
        for (const { resolve } of waiting) resolve();
      },
      failed: (error) => {
        if (this.#live.get(id) === live) this.#dirty.add(id);
        for (const { reject } of waiting) reject(error);
      },
    };
  }

  /** Whether its text goes to the disk. */
  #isKept({ request }: ResponseRecord): boolean {
    return this.#keepsContent && request.store;
  }

  /** Resolves when the record as it is now is written; rejects when it can't be now: it is tried again by itself. */
  #written(id: string): Promise<void> {
    const { fault } = this.#thread;
    if (fault !== undefined) return Promise.reject(new CoreError("insufficient-storage", fault));
    return new Promise((resolve, reject) => this.#live.get(id)?.waiting.push({ resolve, reject }));
  }
}

function withCancel(record: ResponseRecord, requested: string | undefined): ResponseRecord {
  return requested === undefined ? record : { ...record, cancelRequested: requested };
}

/** @param isKept false: nothing that a client or a model wrote */
function rowOf(record: ResponseRecord, isKept: boolean, withRequest: boolean): ResponseRow {
  const { request, response } = record;
  return {
    id: response.id,
    owner: record.owner,
    door: response.door,
    model: response.model,
    status: response.status,
    attempt: response.attempt,
    priority: response.priority,
    is_background: request.background ? 1 : 0,
    created_at: response.createdAt,
    started_at: response.startedAt ?? null,
    finished_at: response.finishedAt ?? null,
    problem_code: response.problem?.code ?? null,
    cancel_requested: record.cancelRequested ?? null,
    epoch: record.epoch,
    fairness_key: isKept ? record.fairnessKey : null,
    request: withRequest ? JSON.stringify(request) : null,
    response: isKept ? JSON.stringify(response) : null,
  };
}

function recordOf(row: ResponseRow): ResponseRecord {
  const { owner, epoch, cancel_requested: cancelRequested } = row;
  const request: ResponseRecord["request"] =
    row.request === null
      ? { ...requestDefaults, model: row.model, input: { kind: "items", items: [] } }
      : JSON.parse(row.request);
  return {
    request,
    owner,
    fairnessKey: row.fairness_key ?? `principal:${owner}`,
    epoch,
    response: row.response === null ? stubOf(row) : JSON.parse(row.response),
    ...(cancelRequested === null ? {} : { cancelRequested }),
  };
}

/** What is left of a response whose text was not kept: no output, no words of its problem. */
function stubOf(row: ResponseRow): ResponseRecord["response"] {
  const code = row.problem_code as keyof typeof problems | null;
  return {
    id: row.id,
    status: row.status as ResponseRecord["response"]["status"],
    model: row.model,
    door: row.door as ResponseRecord["response"]["door"],
    output: [],
    finishes: [],
    timings: {},
    ...(code === null ? {} : { problem: { code, detail: `${problems[code].title}.`, details: {} } }),
    attempt: row.attempt,
    priority: row.priority,
    createdAt: row.created_at,
    ...(row.started_at === null ? {} : { startedAt: row.started_at }),
    ...(row.finished_at === null ? {} : { finishedAt: row.finished_at }),
    metadata: {},
  };
}
