import type { BackendModel, Capabilities } from "@plenum/core";
import type { CapabilityDocument } from "@plenum/profile";
import type { WatchedState } from "../shared/model-watch.ts";
import { openaiBody } from "../shared/openai/body-dialect.ts";
import type { ModelFacts } from "../shared/openai/listed-model.ts";
import { parametersOf } from "../shared/openai/parameters.ts";
import type { NnrpSettings } from "./options.ts";

/** The catalog's entry of a model. @param createdAtMs when it was first seen */
export function toBackendModel(
  facts: ModelFacts,
  document: CapabilityDocument | undefined,
  { state, stateDetail }: WatchedState,
  settings: NnrpSettings,
  createdAtMs: number,
): BackendModel {
  const capabilities = { ...offeredBy(document), ...facts.capabilities, ...settings.capabilities };
  const { contextTokens, embeddingDimensions } = facts;
  return {
    name: facts.name,
    title: facts.name,
    aliases: facts.aliases,
    state,
    ...(stateDetail === undefined ? {} : { stateDetail }),
    // The profile has no operation for prompts without a chat.
    capabilities: { ...capabilities, completion: false, insert: false },
    emulated: [],
    limits: {
      parallel: settings.parallel,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      ...(embeddingDimensions === undefined ? {} : { embeddingDimensions }),
    },
    details: facts.details,
    parameters: parametersOf(openaiBody, capabilities, { toolsEmulated: false }),
    createdAtMs,
  };
}

/**
 * What the service's operations say of its models. Level 1 is a chat with tools and with whatever OpenAI's body asks for;
 * images and thoughts have to be told.
 */
function offeredBy(document: CapabilityDocument | undefined): Capabilities {
  const operation = (wanted: string) => document?.operations.find(({ name }) => name === wanted);
  const chat = operation("chat.completions.create");
  const chats = document === undefined || chat !== undefined;
  return {
    chat: chats,
    completion: false,
    embeddings: operation("embeddings.create") !== undefined,
    tools: chats && chat?.tool_calls !== false,
    structuredOutput: chats,
    reasoning: false,
    vision: false,
    logprobs: chats,
    insert: false,
  };
}
