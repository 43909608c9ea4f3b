import { isCount, isJsonObject, type JsonObject } from "./json.ts";

/** Counts of tokens. What nobody counted is absent. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
}

/** Reads the profile's spelling (`input_tokens`) and that of OpenAI's chats (`prompt_tokens`). What is no count is left out. */
export function readUsage(usage: JsonObject): Usage {
  const input = firstCount(usage["input_tokens"], usage["prompt_tokens"]);
  const output = firstCount(usage["output_tokens"], usage["completion_tokens"]);
  const sum = input === undefined || output === undefined ? undefined : input + output;
  const total = firstCount(usage["total_tokens"], sum);
  const cached = firstCount(
    memberOf(usage["input_tokens_details"], "cached_tokens"),
    memberOf(usage["prompt_tokens_details"], "cached_tokens"),
  );
  const reasoning = firstCount(
    memberOf(usage["output_tokens_details"], "reasoning_tokens"),
    memberOf(usage["completion_tokens_details"], "reasoning_tokens"),
  );
  return {
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(total === undefined ? {} : { totalTokens: total }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
  };
}

function firstCount(...values: readonly unknown[]): number | undefined {
  return values.find(isCount);
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}

/** Usage in the words of chats (`chat.completion`, its chunks, embeddings). */
export function toCompletionUsage(usage: Usage): JsonObject {
  return spell(usage, "prompt", "completion");
}

/** Usage in the words of Responses. */
export function toResponsesUsage(usage: Usage): JsonObject {
  return spell(usage, "input", "output");
}

/** Usage in both spellings, for `response.usage`. */
export function toBothSpellings(usage: Usage): JsonObject {
  return { ...toCompletionUsage(usage), ...toResponsesUsage(usage) };
}

function spell(usage: Usage, input: string, output: string): JsonObject {
  const { inputTokens, outputTokens, totalTokens, cachedInputTokens, reasoningTokens } = usage;
  return {
    ...(inputTokens === undefined ? {} : { [`${input}_tokens`]: inputTokens }),
    ...(outputTokens === undefined ? {} : { [`${output}_tokens`]: outputTokens }),
    ...(totalTokens === undefined ? {} : { total_tokens: totalTokens }),
    ...(cachedInputTokens === undefined ? {} : { [`${input}_tokens_details`]: { cached_tokens: cachedInputTokens } }),
    ...(reasoningTokens === undefined ? {} : { [`${output}_tokens_details`]: { reasoning_tokens: reasoningTokens } }),
  };
}
