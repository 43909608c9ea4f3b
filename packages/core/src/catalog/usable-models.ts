import { mayUseModel, type Principal } from "../auth/principal.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Catalog, ResolvedModel } from "./catalog.ts";
import type { CatalogModel } from "./model.ts";

/** Models that a principal may use: all that it is told of. */
export function usableModels(catalog: Catalog, principal: Principal): readonly CatalogModel[] {
  return catalog.list().filter(({ id }) => mayUseModel(principal, id));
}

/** A model to look at: what may not be used is not there. @throws CoreError model-not-found */
export function findUsable(catalog: Catalog, name: string, principal: Principal): CatalogModel {
  const isShown = (id: string): boolean => mayUseModel(principal, id);
  const found = catalog.find(name)?.model;
  if (found !== undefined && isShown(found.id)) return found;
  throw catalog.notFound(name, isShown);
}

/** @throws CoreError model-not-found, forbidden */
export function resolveFor(catalog: Catalog, name: string, principal: Principal): ResolvedModel {
  const resolved = catalog.resolve(name, (id) => mayUseModel(principal, id));
  if (mayUseModel(principal, resolved.model.id)) return resolved;
  throw new CoreError("forbidden", `The token may not use '${name}'.`, { model: name, param: "model" });
}
