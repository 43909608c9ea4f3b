import { Authenticator, type TokenRecord } from "./auth/authenticator.ts";
import { Catalog } from "./catalog/catalog.ts";
import { ModelLifecycle } from "./catalog/model-lifecycle.ts";
import type { Backend } from "./ports/backend.ts";
import type { Bus } from "./ports/bus.ts";
import type { Clock } from "./ports/clock.ts";
import type { Sha256 } from "./ports/digest.ts";
import type { EventLog } from "./ports/event-log.ts";
import type { Ids } from "./ports/ids.ts";
import type { Leases } from "./ports/lease.ts";
import type { Observer } from "./ports/observer.ts";
import type { Storage } from "./ports/storage.ts";
import { Embeddings } from "./responses/embeddings.ts";
import { Responses, type ResponsesLimits, type ResponsesParts } from "./responses/responses.ts";
import { Scheduler, type SchedulerLimits } from "./scheduling/scheduler.ts";

export interface CoreOptions {
  /** In order of precedence for bare model names. */
  readonly backends: readonly Backend[];
  readonly tokens: readonly TokenRecord[];
  readonly limits: ResponsesLimits & SchedulerLimits;
  /** Closed by who made it, after the core. */
  readonly storage: Storage;
  readonly leases: Leases;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sha256: Sha256;
  readonly observer: Observer;
}

/** What a door works with. */
export interface Core {
  readonly catalog: Catalog;
  readonly models: ModelLifecycle;
  readonly responses: Responses;
  readonly embeddings: Embeddings;
  readonly authenticator: Authenticator;
  readonly scheduler: Scheduler;
  readonly storage: Storage;
  readonly log: EventLog;
  readonly clock: Clock;
  /** Stops as `Responses.drain` says. Backends are closed by who made them. */
  close(drainMs: number): Promise<void>;
}

/** Puts the one execution core together. */
export function createCore(options: CoreOptions): Core {
  const { clock, limits, storage } = options;
  const { log } = storage;
  const catalog = new Catalog(options.backends);
  const scheduler = new Scheduler(clock, limits);
  const parts: ResponsesParts = { ...options, log, store: storage.responses, catalog, scheduler };
  const responses = new Responses(parts);
  const embeddings = new Embeddings(parts, responses);
  return {
    catalog,
    models: new ModelLifecycle(catalog),
    responses,
    embeddings,
    authenticator: new Authenticator(options.tokens, options.sha256, clock),
    scheduler,
    storage,
    log,
    clock,
    async close(drainMs) {
      await Promise.all([responses.drain(drainMs), embeddings.drain(drainMs)]);
      catalog.close();
    },
  };
}
