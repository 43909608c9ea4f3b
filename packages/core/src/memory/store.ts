import type { Page, ResponseQuery, ResponseRecord, Store } from "../ports/store.ts";
import { CoreError } from "../problems/core-error.ts";

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
    const after = query.cursor === undefined ? undefined : placeOf(query.cursor);
    const newestFirst = [...this.#records.values()].sort((a, b) => compare(b.response, a.response));
    const matching = newestFirst.filter(
      (record) => matches(record, query) && (after === undefined || compare(record.response, after) < 0),
    );
    const data = matching.slice(0, query.limit);
    const last = data.at(-1)?.response;
    if (matching.length === data.length || last === undefined) return { data };
    return { data, nextCursor: `${last.createdAt}-${last.id}` };
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

type Place = Pick<ResponseRecord["response"], "createdAt" | "id">;

function compare(a: Place, b: Place): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** A place in the list, which stands also when the response there is gone. @throws CoreError invalid-request */
function placeOf(cursor: string): Place {
  const match = /^(\d{1,16})-(\w+)$/.exec(cursor);
  if (match?.[2] === undefined) {
    throw new CoreError("invalid-request", "The cursor is none of this list; use `next_cursor` as it came.", {
      param: "cursor",
    });
  }
  return { createdAt: Number(match[1]), id: match[2] };
}

function matches({ owner, response }: ResponseRecord, query: ResponseQuery): boolean {
  return (
    (query.owner === undefined || owner === query.owner) &&
    (query.door === undefined || response.door === query.door) &&
    (query.model === undefined || response.model === query.model) &&
    (query.status === undefined || response.status === query.status)
  );
}
