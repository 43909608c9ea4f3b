import { type Capabilities, type ModelDetails, matchesPattern } from "@plenum/core";
import { countOf, isLoose, type Loose, listOf, textOr } from "./loose.ts";

/** What a server tells of one model. Absent: not told. */
export interface ModelFacts {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly contextTokens?: number;
  readonly embeddingDimensions?: number;
  readonly parallel?: number;
  readonly capabilities: Partial<Capabilities>;
  /** Tools are written into the prompt by the server, since the model's template has none. */
  readonly toolsEmulated: boolean;
  /** False: the model does not think, so that an effort has no effect. Absent: not known. */
  readonly hasEffort?: boolean;
  readonly isLoaded: boolean;
  readonly details: ModelDetails;
}

/** Whether a name is among the wanted ones. @param patterns names, or patterns with `*`; none: every model */
export function isWanted(name: string, patterns: readonly string[]): boolean {
  return patterns.length === 0 || patterns.some((pattern) => matchesPattern(pattern, name));
}

/** Models that patterns name without `*`: served even where there is no list, or while nothing is known. */
export function namedModels(patterns: readonly string[]): readonly ModelFacts[] {
  return patterns
    .filter((name) => !name.includes("*"))
    .map((name) => ({ name, aliases: [], capabilities: {}, toolsEmulated: false, isLoaded: false, details: {} }));
}

/** The wanted models of a list, each name once. @param body the list's object, or the list itself; undefined when it is none */
export function listedModels(
  body: unknown,
  patterns: readonly string[],
  isLoaded: boolean,
): readonly ModelFacts[] | undefined {
  const list = isLoose(body) ? body["data"] : body;
  if (!Array.isArray(list)) return undefined;
  const byName = new Map<string, ModelFacts>();
  for (const entry of list.filter(isLoose)) {
    const name = textOr(entry["id"]);
    if (name !== "" && !byName.has(name) && isWanted(name, patterns)) byName.set(name, listedModel(entry, isLoaded));
  }
  return [...byName.values()];
}

/** An entry of the list, with what llama-server (`meta`, `aliases`) and vLLM (`max_model_len`) add to it. */
function listedModel(entry: Loose, isLoaded: boolean): ModelFacts {
  const { id, aliases, max_model_len } = entry;
  const meta = isLoose(entry["meta"]) ? entry["meta"] : {};
  const { n_ctx, n_ctx_train, n_params, size, n_embd, ftype } = meta;
  const name = textOr(id);
  const contextTokens = countOf(max_model_len) ?? countOf(n_ctx);
  const dimensions = countOf(n_embd);
  return {
    name,
    aliases: listOf(aliases).filter((alias): alias is string => typeof alias === "string" && alias !== name),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(dimensions === undefined ? {} : { embeddingDimensions: dimensions }),
    capabilities: {},
    toolsEmulated: false,
    isLoaded,
    details: {
      ...(countOf(n_params) === undefined ? {} : { parameters: Number(n_params), format: "gguf" }),
      ...(countOf(size) === undefined ? {} : { sizeBytes: Number(size) }),
      ...(textOr(ftype) === "" ? {} : { quantization: textOr(ftype) }),
      ...(countOf(n_ctx_train) === undefined ? {} : { trainedContextTokens: Number(n_ctx_train) }),
    },
  };
}
