import type { LmspModel, ResponseRequest } from "@plenum/client";

/**
 * What a benchmark asks for: to count on from a number. Every model goes on with it for as long as it may, hardly ever
 * ends by itself, and a first number of its own keeps a prompt out of every cache.
 */
export interface Workload {
  readonly model: string;
  /** True: the text is continued as it is; false: a chat is asked to continue it. */
  readonly isCompletion: boolean;
  /** Numbers in the prompt. */
  readonly numbers: number;
}

const instruction = "Count on from the last of these numbers, one after the other, separated by spaces. Never stop.\n";

export function workloadOf(model: LmspModel, numbers: number): Workload {
  return { model: model.id, isCompletion: model.capabilities.completion === true, numbers };
}

/**
 * A request of it.
 * @param maxTokens longest answer
 * @param first number that no other request of the run begins with
 */
export function requestOf(workload: Workload, maxTokens: number, first: number): ResponseRequest {
  const text = Array.from({ length: workload.numbers }, (_, index) => first + index).join(" ");
  return {
    model: workload.model,
    input: workload.isCompletion ? { prompt: text, raw: true } : `${instruction}${text}`,
    output: { max_tokens: maxTokens },
    sampling: { temperature: 0 },
    // Where a runtime can be told so, an answer never ends early.
    runtime_options: { vllm: { ignore_eos: true }, "llama-server": { ignore_eos: true } },
  };
}

/** Numbers that begin a prompt: all of six digits, so that each takes about as many tokens. */
export function createFirstNumbers(random: () => number = Math.random): () => number {
  let next = 100_000 + Math.floor(random() * 300_000);
  return () => {
    // Farther apart than any prompt is long.
    next = next + 7_919 > 800_000 ? 100_000 + (next % 7_919) : next + 7_919;
    return next;
  };
}

/** How a prompt's tokens grow with its numbers, from two prompts that were counted. */
export function numbersFor(
  tokens: number,
  small: { readonly numbers: number; readonly tokens: number },
  large: { readonly numbers: number; readonly tokens: number },
): number {
  const each = (large.tokens - small.tokens) / (large.numbers - small.numbers);
  if (!(each > 0)) return large.numbers;
  return Math.max(1, Math.round(small.numbers + (tokens - small.tokens) / each));
}
