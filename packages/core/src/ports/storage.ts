import type { EventLog } from "./event-log.ts";
import type { IdempotencyStore } from "./idempotency-store.ts";
import type { SettingsStore } from "./settings-store.ts";
import type { Store } from "./store.ts";
import type { TaskStore } from "./task-store.ts";
import type { TokenStore } from "./token-store.ts";

/** Everything that a service keeps, in one place: memory, or one database. */
export interface Storage {
  readonly log: EventLog;
  readonly responses: Store;
  readonly tasks: TaskStore;
  readonly tokens: TokenStore;
  readonly idempotency: IdempotencyStore;
  readonly settings: SettingsStore;
  /** True: what it keeps survives the process, so background work may be accepted. */
  readonly isDurable: boolean;
  /**
   * False: no text of a request or an answer reaches the disk (`store.content: never`), so background responses and
   * batches are refused, and what is stored is kept in memory only.
   */
  readonly keepsContent: boolean;
  /** Undefined while it can write; else one sentence that says why not (a full disk), so that new tasks are refused. */
  readonly writeFault?: string | undefined;
  /** Writes what waits, then closes. */
  close(): Promise<void>;
}
