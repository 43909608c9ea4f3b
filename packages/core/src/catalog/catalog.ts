import type { Backend } from "../ports/backend.ts";
import { CoreError } from "../problems/core-error.ts";
import type { BackendModel, CatalogModel, ModelRuntime, ModelState } from "./model.ts";

/** A backend and the name by which it knows the model. */
export interface Route {
  readonly backend: Backend;
  readonly model: BackendModel;
}

/** Where requests of a route wait for a slot, and how many of them run at once. */
export function laneOf({ backend, model }: Route): { readonly lane: string; readonly capacity: () => number } {
  return {
    lane: `${backend.id}/${model.name}`,
    capacity: () => backend.models().find(({ name }) => name === model.name)?.limits.parallel ?? 1,
  };
}

export interface ResolvedModel {
  readonly model: CatalogModel;
  /** Best first; at least one. */
  readonly routes: readonly Route[];
}

/**
 * One catalog over all backends (LMSP §4). Models with equal digests are one entry; otherwise a bare name belongs to the
 * first backend in the given order, also while that is down, and `backend-id/model` always works.
 */
export class Catalog {
  readonly #backends: readonly Backend[];
  readonly #listeners = new Set<() => void>();
  readonly #unsubscribe: readonly (() => void)[];
  #entries: readonly ResolvedModel[] | undefined;
  #names = new Map<string, ResolvedModel>();
  #version = 0;

  /** Resolves when every backend has told its models for the first time. */
  readonly ready: Promise<void>;

  constructor(backends: readonly Backend[]) {
    this.#backends = backends;
    this.ready = Promise.all(backends.map((backend) => backend.ready)).then(() => {});
    this.#unsubscribe = backends.map((backend) => backend.onChange(() => this.#changed()));
  }

  /** Counts up with every change. */
  get version(): number {
    return this.#version;
  }

  list(): readonly CatalogModel[] {
    return this.#resolved().map((entry) => entry.model);
  }

  find(name: string): ResolvedModel | undefined {
    this.#resolved();
    return this.#names.get(name) ?? this.#names.get(`${name}:latest`);
  }

  /**
   * @param isShown says which ids the caller may be told.
   * @throws CoreError model-not-found, with the ids that exist.
   */
  resolve(name: string, isShown: (id: string) => boolean = () => true): ResolvedModel {
    const found = this.find(name);
    if (found === undefined) throw this.notFound(name, isShown);
    return found;
  }

  /** The problem that names the ids which there are and the caller may be told. */
  notFound(name: string, isShown: (id: string) => boolean): CoreError {
    const ids = this.list().flatMap(({ id }) => (isShown(id) ? [id] : []));
    const known = ids.length === 0 ? "There is no model yet." : `Models here: ${ids.slice(0, 20).join(", ")}.`;
    return new CoreError("model-not-found", `There is no model '${name}'. ${known}`, { model: name, param: "model" });
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  #changed(): void {
    this.#entries = undefined;
    this.#version += 1;
    for (const listener of [...this.#listeners]) listener();
  }

  #resolved(): readonly ResolvedModel[] {
    if (this.#entries !== undefined) return this.#entries;
    const groups = this.#group();
    this.#names = new Map();
    this.#entries = groups.map(([id, routes]) => entryOf(id, routes));
    for (const entry of this.#entries) this.#names.set(entry.model.id, entry);
    for (const entry of this.#entries) this.#nameAliases(entry);
    return this.#entries;
  }

  #group(): readonly [string, Route[]][] {
    const groups = new Map<string, Route[]>();
    const byDigest = new Map<string, Route[]>();
    for (const backend of this.#backends) {
      for (const model of backend.models()) {
        const route = { backend, model };
        const same = model.details.digest === undefined ? undefined : byDigest.get(model.details.digest);
        if (same !== undefined && same[0]?.backend !== backend) {
          same.push(route);
          continue;
        }
        const routes = [route];
        groups.set(groups.has(model.name) ? `${backend.id}/${model.name}` : model.name, routes);
        if (model.details.digest !== undefined) byDigest.set(model.details.digest, routes);
      }
    }
    return [...groups];
  }

  #nameAliases(entry: ResolvedModel): void {
    for (const { backend, model } of entry.routes) {
      for (const name of [`${backend.id}/${model.name}`, model.name, ...model.aliases]) {
        if (!this.#names.has(name)) this.#names.set(name, entry);
      }
    }
  }
}

const stateOrder: readonly ModelState[] = ["loaded", "loading", "available", "unavailable"];

function entryOf(id: string, routes: readonly Route[]): ResolvedModel {
  const sorted = [...routes].sort((a, b) => stateOrder.indexOf(a.model.state) - stateOrder.indexOf(b.model.state));
  const best = sorted[0];
  if (best === undefined) throw new RangeError(`model ${id} has no route`);
  const { name: _name, ...shown } = best.model;
  return { model: { ...shown, id, runtimes: routes.map(runtimeOf) }, routes: sorted };
}

function runtimeOf({ backend, model }: Route): ModelRuntime {
  return {
    id: backend.id,
    kind: backend.kind,
    model: model.name,
    state: model.state,
    ...(model.memoryBytes === undefined ? {} : { memoryBytes: model.memoryBytes }),
  };
}
