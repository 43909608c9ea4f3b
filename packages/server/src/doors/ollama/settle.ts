import { type Caller, type Catalog, type Core, CoreError, mayUseModel, type ResponseRequest } from "@plenum/core";

/**
 * The request with the catalog's name of its model. Thinking that the model can't do is refused, as Ollama does.
 * @throws CoreError unsupported-capability
 */
export function settle(request: ResponseRequest, core: Core, caller: Caller): ResponseRequest {
  const settled = { ...request, model: catalogName(core.catalog, request.model) };
  const model = core.catalog.find(settled.model)?.model;
  const { effort } = request.reasoning;
  if (model === undefined || effort === undefined || effort === "none" || model.capabilities.reasoning) return settled;
  // What may not be used is not told about: the core refuses it.
  if (!mayUseModel(caller.principal, model.id)) return settled;
  throw new CoreError("unsupported-capability", `'${model.id}' can't reason; leave 'think' out.`, {
    capability: "reasoning",
    model: model.id,
    param: "think",
  });
}

/** The name as the catalog knows it: some clients add `:latest` to every name without a tag. */
export function catalogName(catalog: Catalog, name: string): string {
  if (catalog.find(name) !== undefined) return name;
  const bare = name.replace(/:latest$/, "");
  return catalog.find(bare) === undefined ? name : bare;
}

const fieldNames: ReadonlyMap<string, string> = new Map([
  ["sampling.logprobs", "logprobs"],
  ["reasoning.effort", "think"],
  ["truncation", "truncate"],
]);

/** Ollama's spelling of one of the core's fields. */
export function fieldName(path: string): string {
  return fieldNames.get(path) ?? path.replace(/^sampling\./, "options.");
}
