import type { TokenLogprob } from "@plenum/core";

/** One token in the words that chat and Responses share. */
export function toWireLogprob({ token, logprob, bytes, top }: TokenLogprob): Record<string, unknown> {
  return {
    token,
    logprob,
    bytes,
    top_logprobs: top.map((other) => ({ token: other.token, logprob: other.logprob, bytes: other.bytes })),
  };
}
