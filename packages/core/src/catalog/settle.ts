import { CoreError } from "../problems/core-error.ts";
import type { ResponseRequest } from "../request/request.ts";
import { wireName } from "../request/wire-name.ts";
import type { CatalogModel } from "./model.ts";

/** A request fitted to the model that will run it. */
export interface SettledRequest {
  readonly request: ResponseRequest;
  /** Fields, in the native interface's spelling, that were taken and change nothing on this model. */
  readonly withoutEffect: readonly string[];
}

/**
 * What the model's `parameters` refuse is refused by name, what has no effect there is named (LMSP §5), and tools that
 * it may use but can't call are left out.
 * @throws CoreError invalid-request with `param`
 */
export function settleRequest(request: ResponseRequest, model: CatalogModel): SettledRequest {
  const withoutEffect: string[] = [];
  for (const [parameter, path] of askedOf(request)) {
    const effect = model.parameters[parameter];
    if (effect === "refused" && !isNeutral(request, parameter)) {
      throw new CoreError("invalid-request", `'${model.id}' can't honour ${parameter}; leave it out.`, {
        param: path,
        model: model.id,
      });
    }
    if (effect === "without_effect") withoutEffect.push(path);
  }
  const isUncallable = request.tools.length > 0 && request.toolChoice === "auto" && !model.capabilities.tools;
  if (!isUncallable) return { request, withoutEffect };
  return { request: { ...request, tools: [] }, withoutEffect: [...withoutEffect, "tools"] };
}

/** Values that ask for nothing; clients that send every field send these. */
const neutral: Readonly<Record<string, number>> = {
  top_p: 1,
  top_k: 0,
  min_p: 0,
  typical_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  repeat_penalty: 1,
};

function isNeutral({ sampling }: ResponseRequest, parameter: string): boolean {
  const name = parameter.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  return parameter in neutral && new Map(Object.entries(sampling)).get(name) === neutral[parameter];
}

const samplingParameters = new Map<string, readonly [string, string]>();

/** A sampling field's name in the catalog's `parameters`, and its path. */
function samplingParameter(name: string): readonly [string, string] {
  let known = samplingParameters.get(name);
  if (known === undefined) {
    const parameter = wireName(name);
    known = [parameter, `sampling.${parameter}`];
    samplingParameters.set(name, known);
  }
  return known;
}

/** Catalog parameters that a request sets, with the fields that set them. */
function askedOf(request: ResponseRequest): (readonly [string, string])[] {
  const { sampling, reasoning, keepAliveMs, truncation, candidates } = request;
  const asked: (readonly [string, string])[] = [];
  for (const name in sampling) asked.push(samplingParameter(name));
  if (reasoning.effort !== undefined) asked.push(["reasoning_effort", "reasoning.effort"]);
  if (keepAliveMs !== undefined) asked.push(["keep_alive", "keep_alive"]);
  if (truncation !== "none") asked.push(["truncation", "truncation"]);
  if (candidates > 1) asked.push(["candidates", "candidates"]);
  return asked;
}
