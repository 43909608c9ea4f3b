import type { BackendModel, Capabilities } from "@plenum/core";
import type { WatchedState } from "../shared/model-watch.ts";
import type { ModelFacts } from "../shared/openai/listed-model.ts";
import { parametersOf } from "../shared/openai/parameters.ts";
import type { Dialect } from "./dialects.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";

/** Names that embedding models have; a list of models says no more than names. */
const embeddingName = /embed|minilm|(^|[/_.-])(bge|e5|gte|gtr|jina|arctic-embed|mxbai)([/_.:-]|$)/i;

/** The catalog's entry of a model. @param createdAtMs when it was first seen */
export function toBackendModel(
  facts: ModelFacts,
  { state, stateDetail }: WatchedState,
  settings: OpenaiCompatibleSettings,
  dialect: Dialect,
  createdAtMs: number,
): BackendModel {
  const capabilities = capabilitiesOf(facts, settings, dialect);
  const { contextTokens, embeddingDimensions } = facts;
  return {
    name: facts.name,
    title: facts.name,
    aliases: facts.aliases,
    state: state === "available" && facts.isLoaded ? "loaded" : state,
    ...(stateDetail === undefined ? {} : { stateDetail }),
    capabilities,
    emulated: facts.toolsEmulated && capabilities.tools ? ["tools"] : [],
    limits: {
      parallel: settings.parallel ?? facts.parallel ?? dialect.parallel,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      ...(embeddingDimensions === undefined ? {} : { embeddingDimensions }),
    },
    details: facts.details,
    parameters: parametersOf(dialect, capabilities, facts),
    createdAtMs,
  };
}

function capabilitiesOf(facts: ModelFacts, settings: OpenaiCompatibleSettings, dialect: Dialect): Capabilities {
  const embeddings = facts.capabilities.embeddings ?? embeddingName.test(facts.name);
  const isText = !embeddings;
  return {
    chat: isText,
    completion: isText,
    embeddings,
    tools: isText,
    structuredOutput: isText,
    reasoning: false,
    vision: false,
    logprobs: isText && dialect.logprobs,
    insert: false,
    ...facts.capabilities,
    ...settings.capabilities,
  };
}
