import type { Json } from "../e2e/service.ts";

/** One token of an answer, with the likeliest tokens at its place. */
export interface TokenChoice {
  readonly token: string;
  readonly logprob: number;
  readonly top: ReadonlyMap<string, number>;
}

/** The tokens of a chat completion that was asked for logprobs. */
export function tokenPath(completion: Json): readonly TokenChoice[] {
  const entries: readonly Json[] = completion.choices[0].logprobs.content;
  return entries.map(({ bytes, logprob, top_logprobs }) => ({
    // Bytes, since a token may end in the middle of a character.
    token: Buffer.from(bytes).toString("hex"),
    logprob,
    top: new Map(top_logprobs.map((entry: Json) => [Buffer.from(entry.bytes).toString("hex"), entry.logprob])),
  }));
}

/** How many tokens two answers begin with alike. */
export function commonLength(a: readonly TokenChoice[], b: readonly TokenChoice[]): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    if (a[index]?.token !== b[index]?.token) return index;
  }
  return length;
}

/** How far log probabilities differ over the common beginning, for the tokens that both tell. */
export function logprobDifferences(
  a: readonly TokenChoice[],
  b: readonly TokenChoice[],
): { readonly mean: number; readonly largest: number } {
  const all: number[] = [];
  // At the first place where they part, what came before is still the same.
  for (let index = 0; index <= commonLength(a, b); index++) {
    for (const [token, logprob] of a[index]?.top ?? []) {
      const other = b[index]?.top.get(token);
      if (other !== undefined) all.push(Math.abs(logprob - other));
    }
  }
  return { mean: all.reduce((sum, value) => sum + value, 0) / all.length, largest: Math.max(...all) };
}
