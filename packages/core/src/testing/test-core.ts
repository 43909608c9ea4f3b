import { localPrincipal } from "../auth/authenticator.ts";
import type { Caller } from "../auth/principal.ts";
import { type Core, type CoreOptions, createCore } from "../core.ts";
import { MemoryBus } from "../memory/bus.ts";
import { systemClock } from "../memory/clock.ts";
import { randomIds } from "../memory/ids.ts";
import { MemoryLeases } from "../memory/leases.ts";
import { MemoryQuotaStore } from "../memory/quota-store.ts";
import { createMemoryStorage } from "../memory/storage.ts";
import type { Backend } from "../ports/backend.ts";
import type { EventLogLimits } from "../ports/event-log.ts";

export type TestCoreOptions = Partial<Omit<CoreOptions, "limits" | "backends">> & {
  readonly backends: readonly Backend[];
  readonly limits?: Partial<CoreOptions["limits"] & EventLogLimits>;
};

/** A digest of 64 hex digits that tells texts apart, where no secret is kept (FNV-1a, eight times). */
export const testSha256 = (text: string): string =>
  Array.from({ length: 8 }, (_, seed) => {
    let hash = 0x811c9dc5 ^ seed;
    for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, "0");
  }).join("");

/** Whoever asks while the service is open. */
export const testCaller: Caller = { principal: localPrincipal, fairnessKey: "peer:test" };

/** A core in memory with limits that no test meets unless it sets them. */
export function createTestCore(options: TestCoreOptions): Core {
  const limits = {
    queued: 10_000,
    queuedPerKey: 10_000,
    resumeWindowMs: 60_000,
    defaultDeadlineMs: 0,
    attempts: 3,
    tasksQueued: 10_000,
    taskRetentionMs: 3_600_000,
    textRetentionMs: 60_000,
    storedRetentionMs: 3_600_000,
    recordBytesTotal: 268_435_456,
    bytesPerResponse: 8_388_608,
    bytesTotal: 268_435_456,
    ...options.limits,
  };
  return createCore({
    tokens: [],
    storage: createMemoryStorage(limits),
    quotas: new MemoryQuotaStore(),
    leases: new MemoryLeases(),
    bus: new MemoryBus(),
    clock: systemClock,
    ids: randomIds,
    sha256: testSha256,
    observer: {},
    ...options,
    limits,
  });
}
