import type { Catalog, ResponseRequest } from "@plenum/core";
import type { ConvertedRequest } from "./converted.ts";

/**
 * Fits a request to the model that it names: what has no effect on that model is named, and so are tools that the model
 * may use and can't call, which are left out. Required and named tools, and unknown models, are the core's to refuse.
 */
export function settle<T extends ConvertedRequest>(converted: T, catalog: Catalog): T {
  const { request, param } = converted;
  const model = catalog.find(request.model)?.model;
  if (model === undefined) return converted;
  const withoutEffect = [...converted.withoutEffect];
  for (const [parameter, path] of askedOf(request)) {
    if (model.parameters[parameter] === "without_effect") withoutEffect.push(param(path));
  }
  const isUncallable = request.tools.length > 0 && request.toolChoice === "auto" && !model.capabilities.tools;
  if (isUncallable) withoutEffect.push("tools");
  return { ...converted, withoutEffect, request: isUncallable ? { ...request, tools: [] } : request };
}

/** Parameters of the catalog that a request sets, with their core paths. */
function askedOf({ sampling, reasoning, keepAliveMs }: ResponseRequest): (readonly [string, string])[] {
  const asked: (readonly [string, string])[] = Object.keys(sampling).map((name) => {
    const parameter = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return [parameter, `sampling.${parameter}`];
  });
  if (reasoning.effort !== undefined) asked.push(["reasoning_effort", "reasoning.effort"]);
  if (keepAliveMs !== undefined) asked.push(["keep_alive", "keep_alive"]);
  return asked;
}
