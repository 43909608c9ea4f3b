import type { IdempotencyRecord, IdempotencyStore } from "@plenum/core";
import type { DatabaseThread } from "./database-thread.ts";

/** Idempotency keys on disk. */
export class SqliteIdempotencyStore implements IdempotencyStore {
  readonly #thread: DatabaseThread;

  constructor(thread: DatabaseThread) {
    this.#thread = thread;
  }

  async claim(record: IdempotencyRecord, nowMs: number): Promise<IdempotencyRecord | undefined> {
    return this.#thread.call("keys.claim", { record, now: nowMs });
  }

  async release(key: string, id: string): Promise<void> {
    await this.#thread.call("keys.release", { key, id });
  }

  async sweep(nowMs: number): Promise<void> {
    await this.#thread.call("keys.sweep", nowMs);
  }
}
