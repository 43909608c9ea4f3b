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

/** Names that the operator gives, beside those of the backends. */
export interface CatalogNames {
  /** Further names, each with a name of its model. A name that a model has itself wins. */
  readonly aliases?: ReadonlyMap<string, string>;
  /** Models of one backend (`backend-id/model`) that are the same as another one, with a name of that. */
  readonly sameAs?: ReadonlyMap<string, string>;
}

/**
 * One catalog over all backends (LMSP §4). Models with equal digests, and those that the operator calls the same, are one
 * entry; otherwise a bare name belongs to the first backend in the given order, also while that is down, and
 * `backend-id/model` always works.
 */
export class Catalog {
  /** In order of precedence, each with what ends its subscription. */
  readonly #backends = new Map<Backend, () => void>();
  #given: CatalogNames;
  readonly #listeners = new Set<() => void>();
  #entries: readonly ResolvedModel[] | undefined;
  #names = new Map<string, ResolvedModel>();
  #version = 0;

  #ready: Promise<void> = Promise.resolve();

  constructor(backends: readonly Backend[], names: CatalogNames = {}) {
    this.#given = names;
    for (const backend of backends) this.add(backend);
  }

  /** Resolves when every backend has told its models for the first time. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  /** In order of precedence. */
  get backends(): readonly Backend[] {
    return [...this.#backends.keys()];
  }

  /** Adds a backend behind the others. @throws RangeError when its id is taken */
  add(backend: Backend): void {
    if (this.backends.some(({ id }) => id === backend.id)) throw new RangeError(`backend id ${backend.id} is taken`);
    this.#backends.set(
      backend,
      backend.onChange(() => this.#changed()),
    );
    this.#ready = Promise.all([this.#ready, backend.ready]).then(() => {});
    this.#changed();
  }

  /** Nothing new goes to the backend; what runs there goes on. Nothing happens when it is not in the catalog. */
  remove(backend: Backend): void {
    this.#backends.get(backend)?.();
    if (this.#backends.delete(backend)) this.#changed();
  }

  /** Counts up with every change. */
  get version(): number {
    return this.#version;
  }

  /** Replaces the further names. */
  setAliases(aliases: ReadonlyMap<string, string>): void {
    this.#given = { ...this.#given, aliases };
    this.#changed();
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
    for (const unsubscribe of this.#backends.values()) unsubscribe();
  }

  #changed(): void {
    this.#entries = undefined;
    this.#version += 1;
    for (const listener of [...this.#listeners]) listener();
  }

  #resolved(): readonly ResolvedModel[] {
    if (this.#entries !== undefined) return this.#entries;
    const groups = joinSame(this.#group(), this.#given.sameAs);
    const names = nameGroups(groups, this.#given.aliases ?? new Map());
    const entries = new Map(groups.map((group) => [group, entryOf(group)]));
    this.#entries = [...entries.values()];
    this.#names = new Map();
    for (const [name, group] of names) {
      const entry = entries.get(group);
      if (entry !== undefined) this.#names.set(name, entry);
    }
    return this.#entries;
  }

  #group(): Group[] {
    const groups = new Map<string, Route[]>();
    const byDigest = new Map<string, Route[]>();
    for (const backend of this.#backends.keys()) {
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
    return [...groups].map(([id, routes]) => ({ id, routes, aliases: [] }));
  }
}

/** Routes that are one entry. */
interface Group {
  readonly id: string;
  readonly routes: Route[];
  /** Filled by `nameGroups`. */
  readonly aliases: string[];
}

/** `backend-id/model`: names one route, whatever else the model is called. */
export function longName({ backend, model }: Route): string {
  return `${backend.id}/${model.name}`;
}

/** By id first, then by a route's own names. */
function findGroup(groups: readonly Group[], name: string): Group | undefined {
  return (
    groups.find(({ id }) => id === name) ??
    groups.find(({ routes }) => routes.some((route) => longName(route) === name)) ??
    groups.find(({ routes }) => routes.some(({ model }) => model.name === name || model.aliases.includes(name)))
  );
}

/** Moves routes that the operator calls the same into one group. A name that is not there changes nothing. */
function joinSame(groups: readonly Group[], sameAs: CatalogNames["sameAs"]): readonly Group[] {
  for (const [name, other] of sameAs ?? []) {
    const from = groups.find(({ routes }) => routes.some((route) => longName(route) === name));
    const to = findGroup(groups, other);
    if (from === undefined || to === undefined || from === to) continue;
    const moved = from.routes.filter((route) => longName(route) === name);
    to.routes.push(...moved);
    from.routes.splice(0, from.routes.length, ...from.routes.filter((route) => !moved.includes(route)));
  }
  return groups.filter(({ routes }) => routes.length > 0);
}

/** Every name and whose it is: ids before runtimes' own names, these before their aliases, the operator's last. */
function nameGroups(groups: readonly Group[], further: ReadonlyMap<string, string>): ReadonlyMap<string, Group> {
  const names = new Map<string, Group>(groups.map((group) => [group.id, group]));
  const give = (name: string, group: Group, isShown = true): void => {
    if (names.has(name)) return;
    names.set(name, group);
    if (isShown) group.aliases.push(name);
  };
  for (const group of groups) {
    for (const route of group.routes) {
      give(longName(route), group, false);
      give(route.model.name, group);
    }
  }
  for (const group of groups) for (const { model } of group.routes) for (const name of model.aliases) give(name, group);
  for (const [alias, name] of further) {
    const group = names.get(name) ?? names.get(`${name}:latest`);
    if (group !== undefined) give(alias, group);
  }
  return names;
}

const stateOrder: readonly ModelState[] = ["loaded", "loading", "available", "unavailable"];

function entryOf({ id, routes, aliases }: Group): ResolvedModel {
  const sorted = [...routes].sort((a, b) => stateOrder.indexOf(a.model.state) - stateOrder.indexOf(b.model.state));
  const best = sorted[0];
  if (best === undefined) throw new RangeError(`model ${id} has no route`);
  const { name: _name, via: _via, ...shown } = best.model;
  return { model: { ...shown, id, aliases, runtimes: routes.map(runtimeOf) }, routes: sorted };
}

function runtimeOf({ backend, model }: Route): ModelRuntime {
  return {
    id: backend.id,
    kind: backend.kind,
    model: model.name,
    state: model.state,
    ...(model.memoryBytes === undefined ? {} : { memoryBytes: model.memoryBytes }),
    ...(model.via === undefined ? {} : { via: model.via }),
  };
}
