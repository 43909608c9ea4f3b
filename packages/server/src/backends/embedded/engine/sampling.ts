import type { SamplingSettings } from "../messages.ts";
import type { SamplerConfig } from "./addon.ts";
import { EngineError } from "./engine-error.ts";

/** llama.cpp takes this seed for "draw one". */
const randomSeed = 0xff_ff_ff_ff;

/**
 * The addon's sampler settings for one candidate. A field that would change nothing is left out: a top-k of 0, for one,
 * would sort the whole vocabulary at every token.
 * @param prompt penalties look back into it, as in llama-server and Ollama
 * @throws EngineError bad-bias when a bias names no token
 */
export function samplerConfig(
  settings: SamplingSettings,
  candidate: number,
  prompt: readonly number[],
  model: { readonly contextTokens: number; readonly vocabularySize: number },
): SamplerConfig {
  const seed = (settings.seed + candidate) >>> 0;
  const config: SamplerConfig = { temperature: settings.temperature, seed: seed === randomSeed ? 1 : seed };
  if (settings.topK > 0) config.topK = settings.topK;
  if (settings.topP < 1) config.topP = settings.topP;
  if (settings.minP > 0) config.minP = settings.minP;
  addPenalties(config, settings, prompt, model.contextTokens);
  addBias(config, settings.logitBias, model.vocabularySize);
  return config;
}

function addPenalties(
  config: SamplerConfig,
  settings: SamplingSettings,
  prompt: readonly number[],
  contextTokens: number,
): void {
  const { repeatPenalty, presencePenalty, frequencyPenalty, repeatLastN } = settings;
  const isOff = repeatPenalty === 1 && presencePenalty === 0 && frequencyPenalty === 0;
  const lookBack = repeatLastN < 0 ? contextTokens : Math.min(repeatLastN, contextTokens);
  if (isOff || lookBack === 0) return;
  config.repeatPenalty = repeatPenalty;
  config.repeatPenaltyPresencePenalty = presencePenalty;
  config.repeatPenaltyFrequencyPenalty = frequencyPenalty;
  config.repeatPenaltyMaxTokens = lookBack;
  config.repeatPenaltyTokens = Uint32Array.from(prompt.slice(-lookBack));
}

function addBias(config: SamplerConfig, bias: SamplingSettings["logitBias"], vocabularySize: number): void {
  if (bias.length === 0) return;
  for (const [token] of bias) {
    if (token < 0 || token >= vocabularySize || !Number.isInteger(token)) {
      throw new EngineError("bad-bias", `The model has no token ${token}.`, {
        limit: vocabularySize,
        requested: token,
      });
    }
  }
  config.tokenBiasKeys = Uint32Array.from(bias.map(([token]) => token));
  config.tokenBiasValues = Float32Array.from(bias.map(([, value]) => (value <= -100 ? -Infinity : value)));
}
