import type { Page, ResponseQuery, ResponseRecord, Store } from "../ports/store.ts";
import { matchesQuery } from "./matches-query.ts";
import { newestFirst } from "./newest-first.ts";

/** Records in memory, newest last. */
export class MemoryStore implements Store {
  readonly #records = new Map<string, ResponseRecord>();

  async put(record: ResponseRecord): Promise<void> {
    const id = record.response.id;
    const cancelRequested = record.cancelRequested ?? this.#records.get(id)?.cancelRequested;
    this.#records.set(id, cancelRequested === undefined ? record : { ...record, cancelRequested });
  }

  async get(id: string): Promise<ResponseRecord | undefined> {
    return this.#records.get(id);
  }

  async list(query: ResponseQuery): Promise<Page<ResponseRecord>> {
    const matching = [...this.#records.values()].filter((record) => matchesQuery(record, query));
    return newestFirst(matching, ({ response }) => response, query);
  }

  async requestCancel(id: string, reason: string): Promise<boolean> {
    const record = this.#records.get(id);
    if (record === undefined) return false;
    this.#records.set(id, { ...record, cancelRequested: record.cancelRequested ?? reason });
    return true;
  }

  async delete(id: string): Promise<void> {
    this.#records.delete(id);
  }

  async unfinished(): Promise<readonly ResponseRecord[]> {
    return [];
  }

  /** Records kept now. */
  get size(): number {
    return this.#records.size;
  }
}
