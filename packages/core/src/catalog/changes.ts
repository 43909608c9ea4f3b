import type { CatalogModel } from "./model.ts";

/** What became of a catalog between two looks at it. */
export interface CatalogChanges {
  readonly added: readonly CatalogModel[];
  /** As they are now. */
  readonly changed: readonly CatalogModel[];
  /** As they were. */
  readonly removed: readonly CatalogModel[];
}

/**
 * Compares two lists of `Catalog.list`. Several changes between the looks count as one, and one that was taken back as
 * none, so whoever merges changes keeps the list that it told last.
 */
export function catalogChanges(before: readonly CatalogModel[], after: readonly CatalogModel[]): CatalogChanges {
  if (before === after) return { added: [], changed: [], removed: [] };
  const was = new Map(before.map((model) => [model.id, model]));
  const is = new Set(after.map(({ id }) => id));
  return {
    added: after.filter(({ id }) => !was.has(id)),
    changed: after.filter((model) => {
      const earlier = was.get(model.id);
      return earlier !== undefined && earlier !== model && JSON.stringify(earlier) !== JSON.stringify(model);
    }),
    removed: before.filter(({ id }) => !is.has(id)),
  };
}
