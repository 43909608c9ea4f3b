import type { Page } from "../ports/store.ts";
import type { BatchLine, TaskEvent, TaskQuery, TaskRecord, TaskStore } from "../ports/task-store.ts";
import { CoreError } from "../problems/core-error.ts";
import { newestFirst } from "./newest-first.ts";

interface KeptTask {
  record: TaskRecord;
  readonly events: TaskEvent[];
  readonly lines: Map<number, BatchLine>;
}

/** Tasks in memory: nothing survives the process. */
export class MemoryTaskStore implements TaskStore {
  readonly #tasks = new Map<string, KeptTask>();

  async put(record: TaskRecord): Promise<void> {
    const task = this.#tasks.get(record.id);
    if (task === undefined) this.#tasks.set(record.id, { record, events: [], lines: new Map() });
    else task.record = withCancel(record, task.record.cancelRequested);
  }

  async get(id: string): Promise<TaskRecord | undefined> {
    return this.#tasks.get(id)?.record;
  }

  head(id: string): Promise<TaskRecord | undefined> {
    return this.get(id);
  }

  async list(query: TaskQuery): Promise<Page<TaskRecord>> {
    const matching = [...this.#tasks.values()].map(({ record }) => record).filter((record) => matches(record, query));
    return newestFirst(matching, (record) => record, query);
  }

  async unfinished(): Promise<readonly TaskRecord[]> {
    return [...this.#tasks.values()]
      .map(({ record }) => record)
      .filter(({ state }) => state === "queued" || state === "running");
  }

  async requestCancel(id: string, reason: string): Promise<boolean> {
    const task = this.#tasks.get(id);
    if (task === undefined) return false;
    task.record = { ...task.record, cancelRequested: task.record.cancelRequested ?? reason };
    return true;
  }

  async delete(id: string): Promise<void> {
    this.#tasks.delete(id);
  }

  async appendEvent(event: TaskEvent): Promise<void> {
    const task = this.#get(event.task.id);
    const last = task.events.length;
    if (event.sequence !== last + 1) {
      throw new CoreError("conflict", `The task ${event.task.id} is at event ${last}, not ${event.sequence - 1}.`);
    }
    task.events.push(event);
    task.record = withCancel({ ...event.task, request: task.record.request }, task.record.cancelRequested);
  }

  async events(id: string, after: number): Promise<readonly TaskEvent[]> {
    return this.#tasks.get(id)?.events.slice(after) ?? [];
  }

  async putLine(id: string, line: BatchLine): Promise<void> {
    const { lines } = this.#get(id);
    if (!lines.has(line.index)) lines.set(line.index, line);
  }

  async lines(id: string, from: number, limit: number): Promise<readonly BatchLine[]> {
    const lines = [...(this.#tasks.get(id)?.lines.values() ?? [])];
    return lines
      .filter(({ index }) => index >= from)
      .sort((a, b) => a.index - b.index)
      .slice(0, limit);
  }

  async finishedLines(id: string): Promise<ReadonlySet<number>> {
    return new Set(this.#tasks.get(id)?.lines.keys());
  }

  async sweep(endedBefore: number): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const [id, { record }] of this.#tasks) {
      if (record.finishedAt === undefined || record.finishedAt >= endedBefore) continue;
      this.#tasks.delete(id);
      ids.push(id);
    }
    return ids;
  }

  #get(id: string): KeptTask {
    const task = this.#tasks.get(id);
    if (task === undefined) throw new CoreError("not-found", `There is no task '${id}'.`, { param: "id" });
    return task;
  }
}

function withCancel(record: TaskRecord, requested: string | undefined): TaskRecord {
  return requested === undefined ? record : { ...record, cancelRequested: requested };
}

function matches(record: TaskRecord, { owner, kind, state }: TaskQuery): boolean {
  return (
    (owner === undefined || record.owner === owner) &&
    (kind === undefined || record.kind === kind) &&
    (state === undefined || record.state === state)
  );
}
