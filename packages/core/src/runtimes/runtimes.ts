import type { Catalog } from "../catalog/catalog.ts";
import type { CatalogModel } from "../catalog/model.ts";
import { detach, within } from "../detach.ts";
import type { Backend, RuntimeHealth } from "../ports/backend.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { SettingsStore } from "../ports/settings-store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Scheduler } from "../scheduling/scheduler.ts";
import { type KeptRuntime, readKept } from "./kept-runtime.ts";
import type { RuntimeDescription, RuntimeSettings, RuntimeSource, RuntimeStatus } from "./runtime.ts";

export interface RuntimesParts {
  readonly catalog: Catalog;
  readonly scheduler: Scheduler;
  readonly settings: SettingsStore;
  readonly bus: Bus;
  readonly clock: Clock;
  /** Of the backends that the catalog begins with. Those that are not described run in this service. */
  readonly described: readonly RuntimeDescription[];
  /** Makes the backend of a runtime. Absent: none can be added. @throws CoreError invalid-request */
  readonly create?: (settings: RuntimeSettings) => Backend;
  readonly onFault: ((error: unknown) => void) | undefined;
}

/** Names of the settings. */
const prefix = "runtime/";
/** Milliseconds that a new runtime may take to tell its models before it is answered with what is known. */
const firstLookMs = 3_000;
/** Milliseconds between looks at whether a removed runtime still runs something, and for how long it may. */
const idleLookMs = 500;
const longestRunMs = 600_000;

/**
 * The runtimes of the service: those that it started with, and those that people add and remove while it runs. The latter
 * are kept in the settings, in every replica alike, and stand behind the others in the catalog's order.
 */
export class Runtimes {
  readonly #parts: RuntimesParts;
  readonly #described: ReadonlyMap<string, RuntimeDescription>;
  readonly #added = new Map<string, { readonly kept: KeptRuntime; readonly backend: Backend }>();
  readonly #unsubscribe: () => void;
  /** Changes run one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: RuntimesParts) {
    this.#parts = parts;
    this.#described = new Map(parts.described.map((described) => [described.id, described]));
    this.#unsubscribe = parts.bus.subscribe("runtimes.changed", () => detach(this.restore(), parts.onFault));
  }

  /** Brings back what is kept. One that can't be made any more is passed over and told as a fault. Call it once at the start. */
  restore(): Promise<void> {
    return this.#inTurn(async () => {
      const { settings } = this.#parts;
      const names = await settings.names(prefix);
      const kept = (await Promise.all(names.map(async (name) => readKept(await settings.get(name))))).flat();
      for (const id of [...this.#added.keys()]) if (!kept.some((each) => each.settings.id === id)) this.#drop(id);
      for (const each of [...kept].sort((a, b) => a.addedAtMs - b.addedAtMs)) this.#bring(each);
    });
  }

  /** In the catalog's order. */
  list(): readonly RuntimeStatus[] {
    const models = this.#parts.catalog.list();
    return this.#parts.catalog.backends.map((backend) => this.#statusOf(backend, models));
  }

  /** Calls the listener when runtimes come or go, and after each change of one; the returned function ends that. */
  onChange(listener: () => void): () => void {
    return this.#parts.catalog.onChange(listener);
  }

  /** Settings of those that people added or approved, without their order. They hold secrets. */
  get added(): readonly RuntimeSettings[] {
    return [...this.#added.values()].map(({ kept }) => kept.settings);
  }

  /**
   * Adds a runtime, which is kept; resolves when it has told its models, or after 3 s.
   * @throws CoreError conflict when the id is taken, unsupported-operation, invalid-request
   */
  add(settings: RuntimeSettings, source: "added" | "approved" = "added"): Promise<RuntimeStatus> {
    return this.#inTurn(async () => {
      if (this.isTaken(settings.id)) {
        throw new CoreError("conflict", `There is a runtime '${settings.id}' already.`, { param: "id" });
      }
      return await this.#put({ settings, source, addedAtMs: this.#nextInstant() });
    });
  }

  /** Later than that of every other, so that their order is kept. */
  #nextInstant(): number {
    const last = Math.max(0, ...[...this.#added.values()].map(({ kept }) => kept.addedAtMs + 1));
    return Math.max(this.#parts.clock.now(), last);
  }

  /** Puts other settings in the place of an added or approved runtime's. @throws CoreError not-found, invalid-request */
  replace(settings: RuntimeSettings): Promise<RuntimeStatus> {
    return this.#inTurn(async () => {
      const { kept } = this.#require(settings.id);
      return await this.#put({ ...kept, settings });
    });
  }

  /** Nothing new goes to it; what it runs may end first. @throws CoreError not-found; conflict when it was not added */
  remove(id: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#require(id);
      await this.#parts.settings.set(`${prefix}${id}`, undefined);
      this.#drop(id);
      this.#parts.bus.publish("runtimes.changed", id);
    });
  }

  isTaken(id: string): boolean {
    return this.#parts.catalog.backends.some((backend) => backend.id === id);
  }

  /** Closes the backends that were made here; running requests fail. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#last.catch(() => {});
    await Promise.all([...this.#added.values()].map(({ backend }) => backend.close()));
  }

  async #put(kept: KeptRuntime): Promise<RuntimeStatus> {
    const { settings, catalog, clock, bus } = this.#parts;
    const backend = this.#create(kept.settings);
    await settings.set(`${prefix}${kept.settings.id}`, kept);
    this.#drop(kept.settings.id);
    this.#enter(kept, backend);
    bus.publish("runtimes.changed", kept.settings.id);
    await within(clock, firstLookMs, backend.ready ?? Promise.resolve());
    return this.#statusOf(backend, catalog.list());
  }

  #bring(kept: KeptRuntime): void {
    const { id } = kept.settings;
    const before = this.#added.get(id);
    if (before !== undefined && JSON.stringify(before.kept) === JSON.stringify(kept)) return;
    if (before !== undefined) this.#drop(id);
    try {
      if (this.isTaken(id)) throw new CoreError("conflict", `The added runtime '${id}' has a name that is taken now.`);
      this.#enter(kept, this.#create(kept.settings));
    } catch (error) {
      this.#parts.onFault?.(error);
    }
  }

  #create(settings: RuntimeSettings): Backend {
    const { create } = this.#parts;
    if (create === undefined) throw new CoreError("unsupported-operation", "This service takes no further runtimes.");
    return create(settings);
  }

  #enter(kept: KeptRuntime, backend: Backend): void {
    this.#added.set(kept.settings.id, { kept, backend });
    this.#parts.catalog.add(backend);
  }

  #drop(id: string): void {
    const added = this.#added.get(id);
    if (added === undefined) return;
    this.#added.delete(id);
    this.#parts.catalog.remove(added.backend);
    this.#closeWhenIdle(added.backend, this.#parts.clock.now() + longestRunMs);
  }

  #closeWhenIdle(backend: Backend, untilMs: number): void {
    const { scheduler, clock, onFault } = this.#parts;
    if (scheduler.runningAt(backend.id) === 0 || clock.now() >= untilMs) detach(backend.close(), onFault);
    else clock.after(idleLookMs, () => this.#closeWhenIdle(backend, untilMs));
  }

  #require(id: string): { readonly kept: KeptRuntime; readonly backend: Backend } {
    const added = this.#added.get(id);
    if (added !== undefined) return added;
    if (!this.isTaken(id)) throw new CoreError("not-found", `There is no runtime '${id}'.`, { param: "id" });
    const source = this.#sourceOf(id);
    const place = source === "found" ? "was found on this machine" : "stands in the configuration";
    throw new CoreError("conflict", `The runtime '${id}' ${place} and can't be removed here.`, { param: "id" });
  }

  #sourceOf(id: string): RuntimeSource {
    return this.#added.get(id)?.kept.source ?? this.#described.get(id)?.source ?? "config";
  }

  #statusOf(backend: Backend, models: readonly CatalogModel[]): RuntimeStatus {
    const { id, kind } = backend;
    const url = this.#added.get(id)?.kept.settings.url ?? this.#described.get(id)?.url;
    const loaded = backend.models().filter(({ state }) => state === "loaded");
    return {
      id,
      kind,
      ...(url === undefined ? {} : { url }),
      ...(backend.health?.() ?? healthOf(backend)),
      models: models.filter(({ runtimes }) => runtimes.some((runtime) => runtime.id === id)).map((model) => model.id),
      running: this.#parts.scheduler.runningAt(id),
      ...(loaded.length === 0 ? {} : { capacity: loaded.reduce((sum, { limits }) => sum + limits.parallel, 0) }),
      source: this.#sourceOf(id),
    };
  }

  #inTurn<Value>(change: () => Promise<Value>): Promise<Value> {
    const turn = this.#last.then(change, change);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** What the models of a backend say of it. */
function healthOf(backend: Backend): RuntimeHealth {
  const models = backend.models();
  const down = models.filter(({ state }) => state === "unavailable");
  if (down.length === 0) return { state: "healthy" };
  const reason = down.map(({ stateDetail }) => stateDetail).find((detail) => detail !== undefined);
  const state = down.length === models.length ? "unavailable" : "degraded";
  return { state, ...(reason === undefined ? {} : { reason }) };
}
