import {
  type BatchLine,
  CoreError,
  cursorOf,
  type Page,
  readCursor,
  type TaskEvent,
  type TaskQuery,
  type TaskRecord,
  type TaskStore,
} from "@plenum/core";
import type { DatabaseThread } from "./database-thread.ts";
import type { TaskRow } from "./thread/tasks.ts";

const synced = { isSynced: true };

/** Tasks on disk: what was promised is there after a crash of the machine, too. */
export class SqliteTaskStore implements TaskStore {
  readonly #thread: DatabaseThread;

  constructor(thread: DatabaseThread) {
    this.#thread = thread;
  }

  async put(record: TaskRecord): Promise<void> {
    const { request, cancelRequested, ...rest } = record;
    await this.#thread.call(
      "tasks.put",
      {
        id: record.id,
        owner: record.owner,
        kind: record.kind,
        state: record.state,
        created_at: record.createdAt,
        ended_at: record.finishedAt ?? null,
        cancel_requested: cancelRequested ?? null,
        request: JSON.stringify(request ?? null),
        record: JSON.stringify(rest),
      },
      synced,
    );
  }

  async get(id: string): Promise<TaskRecord | undefined> {
    const row = await this.#thread.call("tasks.get", id);
    return row === undefined ? undefined : recordOf(row);
  }

  async head(id: string): Promise<TaskRecord | undefined> {
    const row = await this.#thread.call("tasks.head", id);
    return row === undefined ? undefined : recordOf(row);
  }

  async list({ cursor, limit, ...filters }: TaskQuery): Promise<Page<TaskRecord>> {
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const listing = { ...filters, limit: limit + 1, ...(after === undefined ? {} : { after }) };
    const rows = await this.#thread.call("tasks.list", listing);
    const data = rows.slice(0, limit).map(recordOf);
    const last = data.at(-1);
    return rows.length > limit && last !== undefined ? { data, nextCursor: cursorOf(last) } : { data };
  }

  async unfinished(): Promise<readonly TaskRecord[]> {
    return (await this.#thread.call("tasks.unfinished", undefined)).map(recordOf);
  }

  requestCancel(id: string, reason: string): Promise<boolean> {
    return this.#thread.call("tasks.cancel", { id, reason }, synced);
  }

  async delete(id: string): Promise<void> {
    await this.#thread.call("tasks.delete", id);
  }

  async appendEvent(event: TaskEvent): Promise<void> {
    const { task, sequence } = event;
    const { cancelRequested: _kept, ...rest } = task;
    const last = await this.#thread.call(
      "tasks.event",
      {
        id: task.id,
        sequence,
        event: JSON.stringify(event),
        state: task.state,
        endedAt: task.finishedAt ?? null,
        record: JSON.stringify(rest),
      },
      synced,
    );
    if (last === undefined) throw noTask(task.id);
    if (last + 1 !== sequence) {
      throw new CoreError("conflict", `The task ${task.id} is at event ${last}, not ${sequence - 1}.`);
    }
  }

  async events(id: string, after: number): Promise<readonly TaskEvent[]> {
    return (await this.#thread.call("tasks.events", { id, after })).map((text): TaskEvent => JSON.parse(text));
  }

  async putLine(id: string, { index, text }: BatchLine): Promise<void> {
    if (!(await this.#thread.call("tasks.putLine", { id, line: index, text }, synced))) throw noTask(id);
  }

  lines(id: string, from: number, limit: number): Promise<readonly BatchLine[]> {
    return this.#thread.call("tasks.lines", { id, from, limit }).then((rows) => rows.map((row) => ({ ...row })));
  }

  async finishedLines(id: string): Promise<ReadonlySet<number>> {
    return new Set(await this.#thread.call("tasks.finishedLines", id));
  }

  sweep(endedBefore: number): Promise<readonly string[]> {
    return this.#thread.call("tasks.sweep", endedBefore);
  }
}

function recordOf({ record, request, cancel_requested: cancelRequested }: TaskRow): TaskRecord {
  return {
    ...JSON.parse(record),
    request: JSON.parse(request),
    ...(cancelRequested === null ? {} : { cancelRequested }),
  };
}

function noTask(id: string): CoreError {
  return new CoreError("not-found", `There is no task '${id}'.`, { param: "id" });
}
