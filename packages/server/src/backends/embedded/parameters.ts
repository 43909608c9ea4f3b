import { randomInt } from "node:crypto";
import { CoreError, type ParameterEffect, type Sampling } from "@plenum/core";
import type { SamplingSettings } from "./messages.ts";

/** Sampling of a request that leaves it to the runtime: llama.cpp's own defaults. */
const samplingDefaults = {
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repeatPenalty: 1,
  repeatLastN: 64,
} as const satisfies Partial<SamplingSettings>;

/**
 * Sampling with the defaults filled in; without a seed, one is drawn.
 * @throws CoreError invalid-request for `typical_p`, which the engine does not have
 */
export function samplingSettings(sampling: Sampling): SamplingSettings {
  const { typicalP, logitBias, seed } = sampling;
  if (typicalP !== undefined && typicalP !== 1) {
    throw new CoreError("invalid-request", "typical_p is not supported by the embedded engine; use top_p or min_p.", {
      param: "sampling.typical_p",
    });
  }
  return {
    temperature: sampling.temperature ?? samplingDefaults.temperature,
    topK: sampling.topK ?? samplingDefaults.topK,
    topP: sampling.topP ?? samplingDefaults.topP,
    minP: sampling.minP ?? samplingDefaults.minP,
    seed: seed === undefined ? randomInt(2 ** 32) : seed32(seed),
    presencePenalty: sampling.presencePenalty ?? samplingDefaults.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty ?? samplingDefaults.frequencyPenalty,
    repeatPenalty: sampling.repeatPenalty ?? samplingDefaults.repeatPenalty,
    repeatLastN: sampling.repeatLastN ?? samplingDefaults.repeatLastN,
    logitBias: Object.entries(logitBias ?? {}).map(([token, bias]) => [Number(token), bias] as const),
  };
}

/** A whole number of any size as 32 bits. */
function seed32(seed: number): number {
  return ((seed % 2 ** 32) + 2 ** 32) % 2 ** 32;
}

export interface EffectOptions {
  readonly toolsEmulated: boolean;
  readonly reasoning: boolean;
  readonly insert: boolean;
}

/** What becomes of each request field on a text model. */
export function textParameters(options: EffectOptions): Readonly<Record<string, ParameterEffect>> {
  const tools = options.toolsEmulated ? "emulated" : "honoured";
  return {
    temperature: "honoured",
    top_p: "honoured",
    top_k: "honoured",
    min_p: "honoured",
    typical_p: "refused",
    seed: "honoured",
    stop: "honoured",
    presence_penalty: "honoured",
    frequency_penalty: "honoured",
    repeat_penalty: "honoured",
    repeat_last_n: "honoured",
    logit_bias: "honoured",
    logprobs: "honoured",
    tools,
    tool_choice: tools,
    parallel_tool_calls: tools,
    json_schema: "honoured",
    reasoning_effort: options.reasoning ? "honoured" : "without_effect",
    images: "refused",
    suffix: options.insert ? "honoured" : "refused",
    candidates: "honoured",
    truncation: "honoured",
    keep_alive: "honoured",
  };
}

/** What becomes of each field of an embedding request. */
export const embeddingParameters: Readonly<Record<string, ParameterEffect>> = {
  dimensions: "honoured",
  truncate: "honoured",
  keep_alive: "honoured",
};
