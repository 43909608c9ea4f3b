import {
  type BackendModel,
  type Capabilities,
  type Capability,
  capabilityNames,
  type ParameterEffect,
  wireName,
} from "@plenum/core";
import type { WatchedState } from "../shared/model-watch.ts";
import { countOf, isLoose, type Loose, listOf, textOr } from "../shared/openai/loose.ts";

/** A model as the service's catalog tells it. */
export type ModelFacts = Omit<BackendModel, "createdAtMs"> & { readonly createdAtMs?: number };

export interface FactsContext {
  /** Id of the service that asks. */
  readonly ownId: string | undefined;
  /** Id of the service whose catalog it is. */
  readonly id: string;
  readonly hasEmbeddings: boolean;
}

/**
 * An entry of the catalog (LMSP §4), each member looked at. A list, since one that only leads back here is left out:
 * services that serve each other's models must not multiply them.
 */
export function modelFacts(entry: unknown, context: FactsContext): readonly ModelFacts[] {
  if (!isLoose(entry)) return [];
  const name = textOr(entry["id"]);
  const via = viaOf(entry, context);
  if (name === "" || name.length > 300 || via === undefined) return [];
  const createdAtMs = Date.parse(textOr(entry["created_at"]));
  const stateDetail = textOr(entry["state_detail"]);
  return [
    {
      name,
      title: textOr(entry["name"]) || name,
      aliases: texts(entry["aliases"]).filter((alias) => alias !== name),
      state: states.find((state) => state === entry["state"]) ?? "available",
      ...(stateDetail === "" ? {} : { stateDetail }),
      capabilities: capabilitiesOf(entry["capabilities"], context),
      emulated: capabilityNames.filter((capability) => texts(entry["emulated"]).includes(wireName(capability))),
      limits: limitsOf(entry["limits"]),
      details: detailsOf(entry["details"]),
      parameters: parametersOf(entry["parameters"]),
      via,
      ...(Number.isFinite(createdAtMs) ? { createdAtMs } : {}),
    },
  ];
}

/** The catalog's entry. @param seenAtMs when it was first seen */
export function toBackendModel(
  { createdAtMs, stateDetail, ...facts }: ModelFacts,
  watched: WatchedState,
  parallel: number | undefined,
  seenAtMs: number,
): BackendModel {
  const isHere = watched.state === "available";
  const detail = isHere ? stateDetail : watched.stateDetail;
  return {
    ...facts,
    state: isHere ? facts.state : watched.state,
    ...(detail === undefined ? {} : { stateDetail: detail }),
    limits: parallel === undefined ? facts.limits : { ...facts.limits, parallel },
    createdAtMs: createdAtMs ?? seenAtMs,
  };
}

const states = ["available", "loading", "loaded", "unavailable"] as const;
const effects: readonly ParameterEffect[] = ["honoured", "emulated", "refused", "without_effect"];

/** Services on the way, its own first: those behind all of its runtimes that don't lead back here. Undefined: all do. */
function viaOf({ runtimes }: Loose, { ownId, id }: FactsContext): readonly string[] | undefined {
  const ways = listOf(runtimes).map((runtime) => (isLoose(runtime) ? texts(runtime["via"]) : []));
  const forward = ways.filter((way) => ownId === undefined || !way.includes(ownId));
  if (ways.length > 0 && forward.length === 0) return undefined;
  // The service picks the way itself, and a direct one does not keep it from taking another.
  return [...new Set([id, ...forward.flat()])].slice(0, mostServices);
}

/** Services on one way; a chain that is longer is told as if it ended there. */
const mostServices = 32;

function capabilitiesOf(value: unknown, { hasEmbeddings }: FactsContext): Capabilities {
  const told = isLoose(value) ? value : {};
  const is = (name: Capability): boolean => told[wireName(name)] === true;
  return {
    chat: is("chat"),
    completion: is("completion"),
    embeddings: is("embeddings") && hasEmbeddings,
    tools: is("tools"),
    structuredOutput: is("structuredOutput"),
    reasoning: is("reasoning"),
    vision: is("vision"),
    logprobs: is("logprobs"),
    insert: is("insert"),
  };
}

function limitsOf(value: unknown): BackendModel["limits"] {
  const { context_tokens, output_tokens, embedding_dimensions, parallel } = isLoose(value) ? value : {};
  const [contextTokens, outputTokens, embeddingDimensions] = [context_tokens, output_tokens, embedding_dimensions].map(
    countOf,
  );
  return {
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(embeddingDimensions === undefined ? {} : { embeddingDimensions }),
    parallel: Math.min(65_536, Math.max(1, Math.floor(countOf(parallel) ?? 1))),
  };
}

function detailsOf(value: unknown): BackendModel["details"] {
  const told = isLoose(value) ? value : {};
  const [family, quantization, format, digest] = ["family", "quantization", "format", "digest"].map((name) =>
    textOr(told[name]),
  );
  const [parameters, sizeBytes, trained] = ["parameters", "size_bytes", "trained_context_tokens"].map((name) =>
    countOf(told[name]),
  );
  return {
    ...(family ? { family } : {}),
    ...(quantization ? { quantization } : {}),
    ...(format ? { format } : {}),
    ...(digest && /^sha256:[0-9a-f]{64}$/.test(digest) ? { digest } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
    ...(trained === undefined ? {} : { trainedContextTokens: trained }),
  };
}

function parametersOf(value: unknown): Readonly<Record<string, ParameterEffect>> {
  const entries = Object.entries(isLoose(value) ? value : {}).slice(0, 200);
  return Object.fromEntries(
    entries.flatMap(([name, effect]) => {
      const known = effects.find((each) => each === effect);
      return known === undefined ? [] : [[name, known] as const];
    }),
  );
}

function texts(value: unknown): readonly string[] {
  return listOf(value).filter((each): each is string => typeof each === "string" && each.length <= 300);
}
