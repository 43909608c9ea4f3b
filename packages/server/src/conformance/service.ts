import { createHash } from "node:crypto";
import {
  createCore,
  createMemoryStorage,
  MemoryBus,
  MemoryLeases,
  MemoryQuotaStore,
  randomIds,
  systemClock,
} from "@plenum/core";
import { type Listener, type ListenOptions, listen } from "@plenum/nnrp/node";
import { createNnrpDoor, type Level } from "../doors/nnrp/index.ts";
import { DeterministicBackend } from "./deterministic-backend.ts";

export interface ConformanceService {
  /** Most operations that a session may have in flight. */
  readonly maxInFlight: number;
  /** Largest packet, in bytes. */
  readonly frameBytes: number;
  /**
   * Opens an address as `listen` of the library does.
   * @returns the address with the port that was bound.
   */
  listen(address: string, options?: ListenOptions): Promise<string>;
  /** Drops what runs. */
  close(): Promise<void>;
}

export interface ConformanceServiceOptions {
  /** Highest compatibility level. @default 1, which the recipe `chat.unsupported-operation` needs */
  readonly level?: Level;
}

const mebibyte = 1024 * 1024;

/**
 * What conformance suites judge: the product's own door and core, with a backend whose answers never change. Submits
 * that are no requests of the profile are held until a control message comes, as the suite's control scenarios need it.
 */
export function createConformanceService({ level = 1 }: ConformanceServiceOptions = {}): ConformanceService {
  const core = createCore({
    backends: [new DeterministicBackend()],
    tokens: [],
    limits: {
      queued: 64,
      queuedPerKey: 64,
      resumeWindowMs: 1000,
      defaultDeadlineMs: 0,
      textRetentionMs: 1000,
      storedRetentionMs: 1000,
      recordBytesTotal: 64 * mebibyte,
      attempts: 1,
      tasksQueued: 64,
      taskRetentionMs: 1000,
    },
    storage: createMemoryStorage({ bytesPerResponse: 4 * mebibyte, bytesTotal: 64 * mebibyte }),
    quotas: new MemoryQuotaStore(),
    leases: new MemoryLeases(),
    bus: new MemoryBus(),
    clock: systemClock,
    ids: randomIds,
    sha256: (text) => createHash("sha256").update(text).digest("hex"),
    observer: {},
  });
  const { server } = createNnrpDoor({ core, level, holdsOthers: true });
  const listeners: Listener[] = [];
  return {
    maxInFlight: server.limits.operationsPerSession,
    frameBytes: server.limits.frameBytes,
    async listen(address, options) {
      const listener = await listen(server, address, options);
      listeners.push(listener);
      return listener.endpoint;
    },
    async close() {
      await Promise.all(listeners.map((listener) => listener.close()));
      await Promise.all([core.close(0), server.close()]);
    },
  };
}
