import type { CatalogModel } from "@plenum/core";

/** A catalog entry as OpenAI's `model`. */
export function toWireModel(model: CatalogModel): Record<string, unknown> {
  return {
    id: model.id,
    object: "model",
    created: Math.floor(model.createdAtMs / 1000),
    owned_by: model.runtimes[0]?.id ?? "plenum",
  };
}
