import { type Capabilities, type ParameterEffect, wireName } from "@plenum/core";
import type { BodyDialect } from "./body-dialect.ts";

const samplingNames = [
  "temperature",
  "topP",
  "topK",
  "minP",
  "typicalP",
  "seed",
  "stop",
  "presencePenalty",
  "frequencyPenalty",
  "repeatPenalty",
  "repeatLastN",
  "logitBias",
] as const;

/** What becomes of each request field on a model of this dialect. */
export function parametersOf(
  dialect: BodyDialect,
  capabilities: Capabilities,
  { hasEffort = true, toolsEmulated }: { readonly hasEffort?: boolean; readonly toolsEmulated: boolean },
): Readonly<Record<string, ParameterEffect>> {
  if (capabilities.embeddings && !capabilities.chat) {
    const truncate = dialect.truncatesEmbeddings === undefined ? "refused" : "honoured";
    return { dimensions: "emulated", truncate, keep_alive: "without_effect" };
  }
  const effect = (isTaken: boolean): ParameterEffect => (isTaken ? "honoured" : "refused");
  const sampling = samplingNames.map((name) => {
    const parameter = wireName(name);
    return [parameter, effect(dialect.sampling[name] !== undefined)] as const;
  });
  const tools = toolsEmulated && capabilities.tools ? "emulated" : effect(capabilities.tools);
  return {
    ...Object.fromEntries(sampling),
    logprobs: effect(capabilities.logprobs),
    tools,
    tool_choice: tools === "honoured" && !dialect.forcesCalls ? "emulated" : tools,
    parallel_tool_calls: tools,
    json_schema: effect(capabilities.structuredOutput),
    reasoning_effort: hasEffort ? "honoured" : "without_effect",
    images: effect(capabilities.vision),
    suffix: effect(capabilities.insert),
    candidates: effect(dialect.candidates),
    truncation: "emulated",
    keep_alive: "without_effect",
  };
}
