import { type Caller, type Catalog, type CatalogModel, type Core, CoreError, mayUseModel } from "@plenum/core";
import type { Converted } from "./request.ts";

/**
 * Fits a request to the model that it names: tools that the model may but can't call are left out and said so, and
 * thinking that it can't do is refused, as Ollama does. What can't be found or used is left to the core to refuse.
 * @throws CoreError unsupported-capability
 */
export function settle(converted: Converted, core: Core, caller: Caller): Converted {
  const { request, asked, withoutEffect } = converted;
  const name = catalogName(core.catalog, request.model);
  const model = core.catalog.find(name)?.model;
  if (model === undefined || !mayUseModel(caller.principal, model.id)) {
    return { ...converted, request: { ...request, model: name } };
  }
  requireThinking(model, request.reasoning.effort);
  const names = [...withoutEffect];
  for (const [field, parameter] of asked) if (model.parameters[parameter] === "without_effect") names.push(field);
  const isHint = request.toolChoice === "auto" && request.tools.length > 0 && !model.capabilities.tools;
  if (isHint) names.push("tools");
  const tools = isHint ? [] : request.tools;
  return { asked, withoutEffect: names, request: { ...request, model: name, tools } };
}

/** The name as the catalog knows it: some clients add `:latest` to every name without a tag. */
export function catalogName(catalog: Catalog, name: string): string {
  if (catalog.find(name) !== undefined) return name;
  const bare = name.replace(/:latest$/, "");
  return catalog.find(bare) === undefined ? name : bare;
}

function requireThinking(model: CatalogModel, effort: string | undefined): void {
  if (effort === undefined || effort === "none" || model.capabilities.reasoning) return;
  throw new CoreError("unsupported-capability", `'${model.id}' can't reason; leave 'think' out.`, {
    capability: "reasoning",
    model: model.id,
    param: "think",
  });
}
