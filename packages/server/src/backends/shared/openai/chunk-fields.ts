import type { BackendEvent, FinishReason, TokenLogprob } from "@plenum/core";
import { countOf, isLoose, type Loose, listOf, textOr } from "./loose.ts";

type UsageEvent = Extract<BackendEvent, { type: "usage" }>;

/** Names under which servers send what a model thinks, the usual one first. */
const reasoningNames = ["reasoning_content", "reasoning", "thinking"] as const;

export function reasoningOf(delta: Loose): string {
  for (const name of reasoningNames) {
    const text = delta[name];
    if (typeof text === "string" && text !== "") return text;
  }
  return partsOf(delta["content"], "thinking");
}

/** The text of a delta; some servers send a list of parts. */
export function contentOf({ content }: Loose): string {
  return typeof content === "string" ? content : partsOf(content, "text");
}

function partsOf(content: unknown, wanted: "text" | "thinking"): string {
  let text = "";
  for (const part of listOf(content)) {
    if (!isLoose(part) || part["type"] !== wanted) continue;
    const inner = part[wanted];
    text += typeof inner === "string" ? inner : partsOf(inner, "text");
  }
  return text;
}

const finishReasons: Readonly<Record<string, FinishReason>> = {
  length: "length",
  max_tokens: "length",
  model_length: "length",
  tool_calls: "tool_calls",
  tool_use: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
  safety: "content_filter",
};

/** The core's word, put right by what really came: calls end with `tool_calls`, and only calls do. */
export function finishReasonOf(raw: string, hasCalls: boolean): FinishReason {
  const reason = finishReasons[raw.toLowerCase()] ?? "stop";
  if (reason === "stop" || reason === "tool_calls") return hasCalls ? "tool_calls" : "stop";
  return reason;
}

/** Words for an end that is none: the server gave up. */
export function isFailedFinish(raw: string): boolean {
  return /^(abort(ed)?|cancel(l?ed)?|error)$/i.test(raw);
}

/**
 * Usage of an answer; what the server does not count is counted by its deltas, of which each is at least a token. Of
 * several candidates some servers count only one, so then the larger number holds.
 * @param usage the last `usage` object that came @param timings llama-server's, in milliseconds and tokens
 */
export function usageEvent(usage: Loose, timings: Loose, deltas: number, candidates = 1): UsageEvent {
  const {
    prompt_tokens,
    completion_tokens,
    prompt_tokens_details,
    completion_tokens_details,
    prompt_cache_hit_tokens,
  } = usage;
  const { cache_n, prompt_n, predicted_n, prompt_ms, predicted_ms } = timings;
  const cached = isLoose(prompt_tokens_details) ? countOf(prompt_tokens_details["cached_tokens"]) : undefined;
  const reasoning = isLoose(completion_tokens_details)
    ? countOf(completion_tokens_details["reasoning_tokens"])
    : undefined;
  const counted = countOf(completion_tokens) ?? countOf(predicted_n);
  const promptMs = countOf(prompt_ms);
  const generationMs = countOf(predicted_ms);
  return {
    type: "usage",
    usage: {
      inputTokens: countOf(prompt_tokens) ?? (countOf(cache_n) ?? 0) + (countOf(prompt_n) ?? 0),
      outputTokens: candidates > 1 ? Math.max(counted ?? 0, deltas) : (counted ?? deltas),
      cachedInputTokens: cached ?? countOf(prompt_cache_hit_tokens) ?? countOf(cache_n) ?? 0,
      reasoningTokens: reasoning ?? 0,
    },
    ...(promptMs === undefined ? {} : { promptMs }),
    ...(generationMs === undefined ? {} : { generationMs }),
  };
}

/** Log probabilities of a chunk, in the form of chats or the older one of completions. */
export function logprobsOf(logprobs: unknown): readonly TokenLogprob[] {
  if (!isLoose(logprobs)) return [];
  const { content, tokens, token_logprobs, top_logprobs } = logprobs;
  if (Array.isArray(content)) {
    return content
      .filter(isLoose)
      .map((entry) => ({ ...tokenOf(entry), top: listOf(entry["top_logprobs"]).filter(isLoose).map(tokenOf) }));
  }
  const values = listOf(token_logprobs);
  const tops = listOf(top_logprobs);
  return listOf(tokens).map((token, index) => {
    const top = tops[index];
    const list = isLoose(top) ? Object.entries(top) : [];
    return {
      ...tokenOf({ token, logprob: values[index] }),
      top: list.map(([text, logprob]) => tokenOf({ token: text, logprob })),
    };
  });
}

/** Stands for a probability of nothing, as servers write it. */
const impossible = -9999;

function tokenOf({ token, logprob, bytes }: Loose): Omit<TokenLogprob, "top"> {
  const text = textOr(token);
  const given = listOf(bytes).filter((byte): byte is number => typeof byte === "number");
  return {
    token: text,
    logprob: typeof logprob === "number" ? logprob : impossible,
    bytes: Array.isArray(bytes) ? given : [...new TextEncoder().encode(text)],
  };
}
