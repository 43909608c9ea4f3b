import type { Caller } from "../auth/principal.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Catalog, ResolvedModel } from "./catalog.ts";
import type { CatalogModel } from "./model.ts";
import { resolveFor } from "./usable-models.ts";

/** Loads and unloads models on a caller's behalf, whatever runtime serves them. The door's operation names the scope. */
export class ModelLifecycle {
  readonly #catalog: Catalog;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
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
   * @throws CoreError model-not-found, forbidden, and what the runtime throws.
   */
  async unload(name: string, caller: Caller): Promise<CatalogModel> {
    const { model, routes } = await this.#resolve(name, caller);
    await Promise.all(routes.map((route) => route.backend.unload(route.model.name)));
    return model;
  }

  async #resolve(name: string, caller: Caller): Promise<ResolvedModel> {
    await this.#catalog.ready;
    return resolveFor(this.#catalog, name, caller.principal);
  }
}
