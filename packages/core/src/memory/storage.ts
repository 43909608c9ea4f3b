import type { EventLogLimits } from "../ports/event-log.ts";
import type { Storage } from "../ports/storage.ts";
import { MemoryEventLog } from "./event-log.ts";
import { MemoryIdempotencyStore } from "./idempotency-store.ts";
import { MemorySettingsStore } from "./settings-store.ts";
import { MemoryStore } from "./store.ts";
import { MemoryTaskStore } from "./task-store.ts";
import { MemoryTokenStore } from "./token-store.ts";

/** Keeps everything in memory: it ends with the process. @param limits of the event logs */
export function createMemoryStorage(limits: EventLogLimits): Storage {
  return {
    log: new MemoryEventLog(limits),
    responses: new MemoryStore(),
    tasks: new MemoryTaskStore(),
    tokens: new MemoryTokenStore(),
    idempotency: new MemoryIdempotencyStore(),
    settings: new MemorySettingsStore(),
    isDurable: false,
    keepsContent: true,
    close: async () => {},
  };
}
