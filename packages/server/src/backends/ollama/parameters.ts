import type { ParameterEffect } from "@plenum/core";
import type { ShownModel } from "./model-facts.ts";

/**
 * Architectures that Ollama runs on its own engine, which has no penalties and no typical_p and takes them without a
 * word. All others run on llama.cpp, which has them.
 */
const ownEngine: ReadonlySet<string> = new Set([
  "bert",
  "deepseek2",
  "deepseekocr",
  "gemma3",
  "gemma3n",
  "gemma4",
  "glm4moelite",
  "glmocr",
  "gpt-oss",
  "gptoss",
  "laguna",
  "lfm2",
  "lfm2moe",
  "llama4",
  "mistral3",
  "mllama",
  "nemotron_h",
  "nemotron_h_moe",
  "nemotron_h_omni",
  "nomic-bert",
  "olmo3",
  "qwen25vl",
  "qwen3",
  "qwen35",
  "qwen35moe",
  "qwen3moe",
  "qwen3next",
  "qwen3vl",
  "qwen3vlmoe",
]);

/** Only these models take a level of thinking; others think or don't. */
export function hasThinkLevels(architecture: string): boolean {
  return architecture === "gptoss" || architecture === "gpt-oss";
}

/** What becomes of each request field on a model that chats. @param hasLogprobs the server is new enough to tell them */
export function textParameters(model: ShownModel, hasLogprobs: boolean): Readonly<Record<string, ParameterEffect>> {
  const { capabilities, architecture } = model;
  const penalty = ownEngine.has(architecture) ? "refused" : "honoured";
  const callsTools = capabilities.has("tools");
  return {
    temperature: "honoured",
    top_p: "honoured",
    top_k: "honoured",
    min_p: "honoured",
    typical_p: penalty,
    seed: "honoured",
    stop: "honoured",
    presence_penalty: penalty,
    frequency_penalty: penalty,
    repeat_penalty: penalty,
    // Without penalties nothing looks back.
    repeat_last_n: penalty === "refused" ? "without_effect" : "honoured",
    logit_bias: "refused",
    logprobs: hasLogprobs ? "honoured" : "refused",
    tools: callsTools ? "honoured" : "refused",
    tool_choice: callsTools ? "emulated" : "refused",
    parallel_tool_calls: callsTools ? "emulated" : "refused",
    json_schema: "honoured",
    reasoning_effort: effortEffect(model),
    images: capabilities.has("vision") ? "honoured" : "refused",
    suffix: capabilities.has("insert") ? "honoured" : "refused",
    candidates: "emulated",
    truncation: "honoured",
    keep_alive: "honoured",
  };
}

function effortEffect({ capabilities, architecture }: ShownModel): ParameterEffect {
  if (!capabilities.has("thinking")) return "without_effect";
  return hasThinkLevels(architecture) ? "honoured" : "emulated";
}

/** What becomes of each field of an embedding request. */
export const embeddingParameters: Readonly<Record<string, ParameterEffect>> = {
  dimensions: "honoured",
  truncate: "honoured",
  keep_alive: "honoured",
};
