import type { IdempotencyRecord, IdempotencyStore } from "../ports/idempotency-store.ts";

/** Idempotency keys in memory. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #records = new Map<string, IdempotencyRecord>();

  async claim(record: IdempotencyRecord, nowMs: number): Promise<IdempotencyRecord | undefined> {
    const holder = this.#records.get(record.key);
    if (holder !== undefined && holder.expiresAt > nowMs) return holder;
    this.#records.set(record.key, record);
    return undefined;
  }

  async release(key: string, id: string): Promise<void> {
    if (this.#records.get(key)?.id === id) this.#records.delete(key);
  }

  async sweep(nowMs: number): Promise<void> {
    for (const [key, { expiresAt }] of this.#records) if (expiresAt <= nowMs) this.#records.delete(key);
  }
}
