import { type Clock, type EventLogLimits, type Storage, systemClock } from "@plenum/core";
import { DatabaseThread } from "./database-thread.ts";
import { SqliteEventLog } from "./event-log.ts";
import { SqliteIdempotencyStore } from "./idempotency-store.ts";
import { SqliteStore } from "./response-store.ts";
import { SqliteSettingsStore } from "./settings-store.ts";
import { SqliteTaskStore } from "./task-store.ts";
import { SqliteTokenStore } from "./token-store.ts";
import { Upkeep } from "./upkeep.ts";

export interface SqliteStorageOptions extends EventLogLimits {
  /** Made when it is missing, with its folder; only its owner may read it. */
  readonly file: string;
  /** Most bytes of the file: what ended longest ago goes first. 0: no limit. @default 2147483648 */
  readonly maxBytes?: number;
  /** `never`: no text of a request or an answer is written. @default "always" */
  readonly content?: "always" | "never";
  /** Milliseconds that a stored response and its events are kept after its end. @default 3600000 */
  readonly responseRetentionMs?: number;
  /** Milliseconds that a background response, which is a task, is kept after its end. @default 604800000 */
  readonly taskRetentionMs?: number;
  readonly clock?: Clock;
  /** Milliseconds that pass, whatever the clock does. @default `performance.now` */
  readonly elapsedMs?: () => number;
  /** Told when the disk takes nothing more, in one sentence, and with undefined when it does again. */
  readonly onFault?: (fault: string | undefined) => void;
}

/** A storage with what a test has to start by itself. */
export interface SqliteStorage extends Storage {
  /** One round of retention and of the size cap; it runs by itself every 10 s. */
  sweep(): Promise<void>;
}

/**
 * Opens the storage of one machine: memory for what is live, an SQLite file behind it, owned by a thread of its own.
 * @throws StorageRefusal when the file is in use, damaged, made by a newer version, or can't be written.
 */
export async function openSqliteStorage(options: SqliteStorageOptions): Promise<SqliteStorage> {
  const { file, maxBytes = 2_147_483_648, content = "always", clock = systemClock, onFault = () => {} } = options;
  const keepsContent = content === "always";
  const forget = (ids: readonly string[]): void => {
    for (const id of ids) {
      log.forget(id);
      responses.forget(id);
    }
    log.prune();
  };
  const thread = await DatabaseThread.start({ file, maxBytes }, { evicted: forget, fault: onFault });
  // In this order: a response is written after the events that it tells of.
  const log = new SqliteEventLog(options, thread, keepsContent, clock);
  const responses = new SqliteStore(thread, keepsContent);
  const upkeep = new Upkeep(thread, {
    responseRetentionMs: options.responseRetentionMs ?? 3_600_000,
    taskRetentionMs: options.taskRetentionMs ?? 604_800_000,
    clock,
    elapsedMs: options.elapsedMs ?? (() => performance.now()),
    onForgotten: forget,
  });
  await thread.call("responses.interrupt", clock.now());
  return {
    log,
    responses,
    tasks: new SqliteTaskStore(thread),
    tokens: new SqliteTokenStore(thread),
    idempotency: new SqliteIdempotencyStore(thread),
    settings: new SqliteSettingsStore(thread),
    isDurable: true,
    keepsContent,
    get writeFault() {
      return thread.fault;
    },
    sweep: () => upkeep.sweep(),
    async close() {
      upkeep.close();
      responses.hurry();
      await thread.close();
    },
  };
}
