import { makeRequest } from "@plenum/core";
import { compact } from "../../compact.ts";
import type { HeaderFields } from "../../request-headers.ts";
import { type ConvertedRequest, renamePath, samplingRenamings } from "../converted.ts";
import { readFields, refuse } from "../fields.ts";
import { toKeepAliveMs, toSampling } from "../sampling.ts";
import { streamOptionsWithoutEffect } from "../stream-options.ts";
import { completionTable } from "./fields.ts";
import type { CompletionBody } from "./schema.ts";

/** This API's own default: an answer whose length nobody asked for is short. */
const defaultMaxTokens = 16;

export interface ConvertedCompletion extends ConvertedRequest {
  readonly includeUsage: boolean;
}

/**
 * The core's request for a text completion.
 * @throws CoreError invalid-request, unsupported-capability, with the field as `param`.
 */
export function toCompletionRequest(body: CompletionBody, headers: HeaderFields): ConvertedCompletion {
  const withoutEffect = [...readFields(body, completionTable), ...streamOptionsWithoutEffect(body)];
  return {
    request: makeRequest({
      model: body.model,
      input: {
        kind: "completion",
        prompt: toPrompt(body.prompt),
        raw: true,
        ...compact({ suffix: body.suffix || undefined }),
      },
      output: { format: { type: "text" }, maxTokens: body.max_tokens ?? defaultMaxTokens },
      sampling: toSampling(body, body.logprobs ?? undefined),
      candidates: body.n,
      keepAliveMs: toKeepAliveMs(body.keep_alive),
      ...headers,
    }),
    isStream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    withoutEffect,
    param: (path) =>
      renamePath(path, [
        ["input.suffix", "suffix"],
        ["input", "prompt"],
        ["output.max_tokens", "max_tokens"],
        ["sampling.logprobs", "logprobs"],
        ...samplingRenamings,
        ["candidates", "n"],
      ]),
  };
}

function toPrompt(prompt: CompletionBody["prompt"]): string {
  if (typeof prompt === "string") return prompt;
  const [first, ...others] = prompt;
  if (typeof first !== "string") return refuse("prompt", "token ids belong to one runtime; send the text");
  if (others.length > 0) return refuse("prompt", "send one request for each prompt");
  return first;
}
