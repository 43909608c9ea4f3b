import { Authenticator } from "./auth/authenticator.ts";
import { Tokens } from "./auth/tokens.ts";
import { Catalog, type CatalogNames } from "./catalog/catalog.ts";
import { ModelLifecycle } from "./catalog/model-lifecycle.ts";
import { detach } from "./detach.ts";
import type { Backend } from "./ports/backend.ts";
import type { Bus } from "./ports/bus.ts";
import type { Clock } from "./ports/clock.ts";
import type { Sha256 } from "./ports/digest.ts";
import type { EventLog } from "./ports/event-log.ts";
import type { Ids } from "./ports/ids.ts";
import type { Leases } from "./ports/lease.ts";
import { emptyNeighbourhood, type Neighbourhood } from "./ports/nearby.ts";
import type { Observer } from "./ports/observer.ts";
import type { QuotaStore } from "./ports/quota-store.ts";
import type { Storage } from "./ports/storage.ts";
import type { TokenRecord } from "./ports/token-store.ts";
import { Embeddings } from "./responses/embeddings.ts";
import { Idempotency } from "./responses/idempotency.ts";
import { Responses, type ResponsesLimits, type ResponsesParts } from "./responses/responses.ts";
import { Nearby } from "./runtimes/nearby.ts";
import { Runtimes, type RuntimesParts } from "./runtimes/runtimes.ts";
import { Quotas } from "./scheduling/quotas.ts";
import { Scheduler, type SchedulerLimits } from "./scheduling/scheduler.ts";
import { Tasks, type TasksLimits } from "./tasks/tasks.ts";

export interface CoreOptions {
  /** In order of precedence for bare model names. */
  readonly backends: readonly Backend[];
  /** Names of models that the configuration gives. Absent: none. */
  readonly names?: CatalogNames;
  /** Tokens of the configuration, beside those that the storage keeps. */
  readonly tokens: readonly FixedToken[];
  /** False: a token is required also while none exists. @default true */
  readonly mayBeOpen?: boolean;
  readonly limits: ResponsesLimits & SchedulerLimits & TasksLimits;
  /** Closed by who made it, after the core. */
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  readonly leases: Leases;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sha256: Sha256;
  readonly observer: Observer;
  /** What is known of the backends, and how further ones are made. Absent: none can be added. */
  readonly runtimes?: Pick<RuntimesParts, "described" | "create">;
  /** Absent: nobody looks for services on the local network. */
  readonly neighbourhood?: Neighbourhood;
}

/** A token as the configuration has it. */
type FixedToken = Omit<TokenRecord, "id" | "createdAt" | "lastUsedAt">;

/** What a door works with. */
export interface Core {
  readonly catalog: Catalog;
  readonly models: ModelLifecycle;
  readonly responses: Responses;
  readonly embeddings: Embeddings;
  /** Whoever composes the service registers the executors of its kinds. */
  readonly tasks: Tasks;
  /** Knows the kept tokens once `load` has resolved, which whoever listens to strangers awaits first. */
  readonly authenticator: Authenticator;
  readonly tokens: Tokens;
  readonly idempotency: Idempotency;
  readonly scheduler: Scheduler;
  /** Whoever composes the service calls `restore` before it listens. */
  readonly runtimes: Runtimes;
  readonly nearby: Nearby;
  readonly storage: Storage;
  readonly log: EventLog;
  readonly clock: Clock;
  /**
   * Takes up what an earlier process left (LMSP §7). Once, with the executors registered and before anything is accepted;
   * resolves when everything is in its place, without waiting for the runtimes.
   */
  recover(): Promise<void>;
  /** Calls the listener when everything that ran has ended, so that watchers end, too; the returned function ends the wait. */
  onDrained(listener: () => void): () => void;
  /** Stops as `Responses.drain` and `Tasks.drain` say. Backends are closed by who made them. */
  close(drainMs: number): Promise<void>;
}

/** Puts the one execution core together. */
export function createCore(options: CoreOptions): Core {
  const { clock, limits, storage, observer, mayBeOpen = true } = options;
  const { log } = storage;
  const catalog = new Catalog(options.backends, options.names);
  const scheduler = new Scheduler(clock, limits);
  const runtimes = new Runtimes({
    ...(options.runtimes ?? { described: [] }),
    catalog,
    scheduler,
    settings: storage.settings,
    bus: options.bus,
    clock,
    onFault: observer.fault,
  });
  const quotas = new Quotas(options.quotas, clock, (promise) => detach(promise, observer.fault));
  const parts: ResponsesParts = { ...options, log, store: storage.responses, catalog, scheduler, quotas };
  const responses = new Responses(parts);
  const embeddings = new Embeddings(parts, responses);
  const tasks = new Tasks({ ...options, responses });
  const fixed = options.tokens.map((token, index) => ({ ...token, id: `config-${index + 1}`, createdAt: 0 }));
  const auth = { ...options, fixed, store: storage.tokens, mayBeOpen };
  const authenticator = new Authenticator({ ...auth, onFault: observer.fault });
  const drained = new Set<() => void>();
  return {
    catalog,
    models: new ModelLifecycle({
      catalog,
      scheduler,
      settings: storage.settings,
      ...(options.names?.aliases === undefined ? {} : { aliases: options.names.aliases }),
    }),
    responses,
    embeddings,
    tasks,
    authenticator,
    tokens: new Tokens({ ...auth, authenticator }),
    idempotency: new Idempotency({ ...options, store: storage.idempotency, onFault: observer.fault }),
    scheduler,
    runtimes,
    nearby: new Nearby(options.neighbourhood ?? emptyNeighbourhood, runtimes),
    storage,
    log,
    clock,
    async recover() {
      await responses.recover();
      await tasks.recover();
    },
    onDrained(listener) {
      drained.add(listener);
      return () => drained.delete(listener);
    },
    async close(drainMs) {
      await Promise.all([tasks.drain(drainMs), responses.drain(drainMs), embeddings.drain(drainMs)]);
      for (const listener of [...drained]) listener();
      await authenticator.close();
      await runtimes.close();
      catalog.close();
    },
  };
}
