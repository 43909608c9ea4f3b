import type { TokenLogprob } from "@plenum/core";
import type { AddonContext, AddonSampler, SamplerConfig } from "./addon.ts";
import type { Vocabulary } from "./vocabulary.ts";

const decoder = new TextDecoder();

/**
 * Log probabilities as the model gave them: sampled again from the same logits, before temperature, bias, penalties
 * and grammar.
 */
export class LogprobReader {
  readonly #context: AddonContext;
  readonly #vocabulary: Vocabulary;
  readonly #untouched: AddonSampler;
  readonly #makeSampler: (config: SamplerConfig) => AddonSampler;
  readonly #listers = new Map<number, AddonSampler>();

  constructor(context: AddonContext, vocabulary: Vocabulary, makeSampler: (config: SamplerConfig) => AddonSampler) {
    this.#context = context;
    this.#vocabulary = vocabulary;
    this.#makeSampler = makeSampler;
    this.#untouched = makeSampler({ temperature: 0 });
  }

  /**
   * @param index place of the logits in the decoded batch; to be called before the next decode
   * @param top most likely tokens wanted, 0 … 20
   */
  async read(index: number, token: number, top: number): Promise<TokenLogprob> {
    const [chosen, listed] = await Promise.all([
      this.#context.sampleToken(index, this.#untouched, false, false, [[token], false, false, true, 0], true),
      top > 0
        ? this.#context.sampleToken(index, this.#lister(top), false, false, [[], false, false, false, top], false)
        : undefined,
    ]);
    const logits = pairs(chosen[3]);
    // The greedy choice is the highest logit, and the weight is the sum of exp(logit - highest).
    const total = Math.max(...logits.values()) + Math.log(chosen[4] ?? 1);
    const list = [...pairs(listed?.[3])].slice(0, top);
    return {
      ...this.#entry(token, (logits.get(token) ?? -Infinity) - total),
      top: list.map(([other, logit]) => this.#entry(other, logit - total)),
    };
  }

  #lister(top: number): AddonSampler {
    const known = this.#listers.get(top);
    if (known !== undefined) return known;
    const lister = this.#makeSampler({ temperature: 1, topK: top, seed: 1 });
    this.#listers.set(top, lister);
    return lister;
  }

  #entry(token: number, logprob: number): { token: string; logprob: number; bytes: number[] } {
    const bytes = this.#vocabulary.listedBytes(token);
    return { token: decoder.decode(bytes), logprob, bytes: [...bytes] };
  }
}

/** Alternating tokens and logits as a map; a token that is listed twice counts once. */
function pairs(flat: readonly number[] | undefined): Map<number, number> {
  const map = new Map<number, number>();
  for (let at = 0; flat !== undefined && at + 1 < flat.length; at += 2) {
    const token = flat[at];
    const logit = flat[at + 1];
    if (token !== undefined && logit !== undefined) map.set(token, logit);
  }
  return map;
}
