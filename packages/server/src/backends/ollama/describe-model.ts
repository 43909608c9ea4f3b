import type { BackendModel, Capabilities, ModelLimits } from "@plenum/core";
import type { ListedModel, LoadedModel, ShownModel } from "./model-facts.ts";
import { embeddingParameters, textParameters } from "./parameters.ts";

/** All that is known of one model. */
export interface KnownModel {
  readonly listed: ListedModel;
  /** Undefined: the server could not describe it. */
  readonly shown: ShownModel | undefined;
  readonly loaded: LoadedModel | undefined;
}

export interface DescribeOptions {
  readonly parallel: number;
  readonly hasLogprobs: boolean;
  readonly isLoading: boolean;
  /** Why no model of this server can be used now. */
  readonly outage: string | undefined;
}

/** A model in the catalog's words. */
export function describeModel(model: KnownModel, options: DescribeOptions): BackendModel {
  const { listed, shown, loaded } = model;
  const { name, sizeBytes } = listed;
  const stateDetail = options.outage ?? (shown === undefined ? undescribed(name) : undefined);
  const isUp = stateDetail === undefined;
  const embeds = shown?.capabilities.has("embedding") === true && !shown.capabilities.has("completion");
  const text = shown === undefined ? {} : textParameters(shown, options.hasLogprobs);
  return {
    name,
    title: shown?.title ?? name,
    // Ollama itself takes a name without a tag for this.
    aliases: name.endsWith(":latest") ? [name.slice(0, -":latest".length)] : [],
    state: isUp ? stateOf(model, options.isLoading) : "unavailable",
    ...(isUp ? {} : { stateDetail }),
    capabilities: capabilitiesOf(shown, options.hasLogprobs),
    emulated: [],
    limits: limitsOf(model, options.parallel),
    details: { ...shown?.details, ...(sizeBytes === undefined ? {} : { sizeBytes }) },
    parameters: embeds ? embeddingParameters : text,
    ...(isUp && loaded?.memoryBytes !== undefined ? { memoryBytes: loaded.memoryBytes } : {}),
    ...(isUp && loaded?.expiresAtMs !== undefined ? { expiresAtMs: loaded.expiresAtMs } : {}),
    createdAtMs: listed.modifiedAtMs,
  };
}

function undescribed(name: string): string {
  return `Ollama can't describe ${name}; pull it again, or remove it.`;
}

function stateOf({ loaded }: KnownModel, isLoading: boolean): BackendModel["state"] {
  if (loaded !== undefined) return "loaded";
  return isLoading ? "loading" : "available";
}

function capabilitiesOf(shown: ShownModel | undefined, hasLogprobs: boolean): Capabilities {
  const has = (capability: string): boolean => shown?.capabilities.has(capability) === true;
  const chats = has("completion");
  return {
    chat: chats,
    completion: chats,
    embeddings: has("embedding"),
    tools: has("tools"),
    structuredOutput: chats,
    reasoning: has("thinking"),
    vision: has("vision"),
    logprobs: chats && hasLogprobs,
    insert: has("insert"),
  };
}

/** The context is known while a model is loaded, and where its Modelfile sets it; the server's default is not told. */
function limitsOf({ shown, loaded }: KnownModel, parallel: number): ModelLimits {
  const trained = shown?.details.trainedContextTokens ?? Number.POSITIVE_INFINITY;
  const set = shown?.contextTokens === undefined ? undefined : Math.min(shown.contextTokens, trained);
  const contextTokens = loaded?.contextTokens ?? set;
  const dimensions = shown?.capabilities.has("embedding") ? shown.embeddingDimensions : undefined;
  return {
    parallel,
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(dimensions === undefined ? {} : { embeddingDimensions: dimensions }),
  };
}
