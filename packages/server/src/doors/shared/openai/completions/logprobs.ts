import type { TokenLogprob } from "@plenum/core";

/**
 * Log probabilities in the old parallel lists.
 * @param offset characters of the answer before the first token.
 */
export function toCompletionLogprobs(logprobs: readonly TokenLogprob[], offset: number): Record<string, unknown> {
  const offsets: number[] = [];
  let place = offset;
  for (const { token } of logprobs) {
    offsets.push(place);
    place += token.length;
  }
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(({ top }) => Object.fromEntries(top.map((other) => [other.token, other.logprob]))),
    text_offset: offsets,
  };
}
