import type { Caller } from "../auth/principal.ts";
import type { SettingsStore } from "../ports/settings-store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Scheduler } from "../scheduling/scheduler.ts";
import { type Catalog, laneOf, longName, type ResolvedModel, type Route } from "./catalog.ts";
import type { CatalogModel } from "./model.ts";
import { ModelAliases } from "./model-aliases.ts";
import { resolveFor } from "./usable-models.ts";

export interface ModelLifecycleParts {
  readonly catalog: Catalog;
  readonly scheduler: Scheduler;
  readonly settings: SettingsStore;
  /** Aliases of the configuration: these can't be changed here. */
  readonly aliases?: ReadonlyMap<string, string>;
}

/** Loads, unloads, names and removes models on a caller's behalf, whatever runtime serves them. The door's operation names the scope. */
export class ModelLifecycle {
  readonly #catalog: Catalog;
  readonly #scheduler: Scheduler;
  readonly #configured: ReadonlyMap<string, string>;
  readonly #aliases: ModelAliases;

  constructor({ catalog, scheduler, settings, aliases = new Map() }: ModelLifecycleParts) {
    this.#catalog = catalog;
    this.#scheduler = scheduler;
    this.#configured = aliases;
    this.#aliases = new ModelAliases(settings, (given) => catalog.setAliases(new Map([...given, ...aliases])));
  }

  /** Reads the kept aliases: to be awaited at the start. */
  loadAliases(): Promise<void> {
    return this.#aliases.load();
  }

  /** Id of the model that a caller means. @throws CoreError model-not-found, forbidden */
  async idOf(name: string, caller: Caller): Promise<string> {
    return (await this.#resolve(name, caller)).model.id;
  }

  /**
   * Loads the model where its next response would run; resolves when it can answer.
   * @param options.keepAliveMs milliseconds that it stays loaded when idle; -1: for ever; absent: the service's default.
   * @throws CoreError model-not-found, forbidden, cancelled, and what the runtime throws.
   */
  async load(
    name: string,
    options: { readonly keepAliveMs?: number },
    caller: Caller,
    signal: AbortSignal,
  ): Promise<CatalogModel> {
    const { model, routes } = await this.#resolve(name, caller);
    const [route] = routes;
    if (route === undefined) throw new CoreError("internal", `'${model.id}' has no runtime.`);
    try {
      signal.throwIfAborted();
      await route.backend.load(route.model.name, options, signal);
    } catch (error) {
      if (signal.aborted) throw new CoreError("cancelled", "Loading was cancelled.", { reason: "disconnected" });
      throw error;
    }
    return model;
  }

  /**
   * Unloads the model from every runtime that serves it, once its running responses have ended.
   * @param signal ends the wait, not what was begun.
   * @throws CoreError model-not-found, forbidden, and what the runtime throws; the signal's reason.
   */
  async unload(name: string, caller: Caller, signal?: AbortSignal): Promise<CatalogModel> {
    const { model, routes } = await this.#resolve(name, caller);
    await abortable(Promise.all(routes.map((route) => route.backend.unload(route.model.name))), signal);
    return model;
  }

  /**
   * Gives a model a further name, which is kept.
   * @throws CoreError model-not-found, forbidden; invalid-request for a name that can't be; conflict when it is taken.
   */
  async alias(alias: string, name: string, caller: Caller): Promise<void> {
    const { model } = await this.#resolve(name, caller);
    const taken = this.#configured.has(alias) || (!this.#aliases.has(alias) && this.#catalog.find(alias) !== undefined);
    if (taken)
      throw new CoreError("conflict", `'${alias}' is a model's name already; choose another one.`, { param: "alias" });
    await this.#aliases.set(alias, model.id);
  }

  /**
   * Removes a model from every runtime that serves it; `runtime-id/model` from that one only; a name that `alias` gave
   * just goes itself.
   * @throws CoreError model-not-found, forbidden; conflict while it is used; unsupported-operation when one of its runtimes
   * can't remove models: then nothing is removed.
   */
  async delete(name: string, caller: Caller): Promise<void> {
    const { model, routes } = await this.#resolve(name, caller);
    if (this.#aliases.has(name)) return this.#aliases.delete(name);
    if (this.#configured.has(name)) {
      throw new CoreError("conflict", `'${name}' is an alias of the configuration; remove it there.`, { model: name });
    }
    const named = routes.filter((route) => longName(route) === name);
    const meant = named.length > 0 ? named : routes;
    const deletions = meant.map((route) => {
      const remove = route.backend.delete?.bind(route.backend);
      if (remove === undefined) throw cannotDelete(model.id, route);
      if (this.#scheduler.isBusy(laneOf(route).lane)) throw inUse(model.id);
      return () => remove(route.model.name);
    });
    for (const deletion of deletions) await deletion();
  }

  async #resolve(name: string, caller: Caller): Promise<ResolvedModel> {
    await this.#catalog.ready;
    return resolveFor(this.#catalog, name, caller.principal);
  }
}

function cannotDelete(model: string, { backend }: Route): CoreError {
  return new CoreError(
    "unsupported-operation",
    `The runtime '${backend.id}' (${backend.kind}) can't delete models; delete '${model}' there.`,
    { model },
  );
}

function inUse(model: string): CoreError {
  return new CoreError("conflict", `'${model}' is in use; cancel its responses or wait until they have ended.`, {
    model,
  });
}

async function abortable(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
