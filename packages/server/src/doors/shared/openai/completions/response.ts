import { type Response, uniquePart } from "@plenum/core";
import { toCompletionUsage } from "../usage.ts";
import { toCompletionLogprobs } from "./logprobs.ts";

/** `cmpl-<x>` of the response `resp_<x>`. */
export function completionId(id: string): string {
  return `cmpl-${uniquePart(id)}`;
}

/** A whole answer as `text_completion`. */
export function toTextCompletion(response: Response): Record<string, unknown> {
  return {
    id: completionId(response.id),
    object: "text_completion",
    created: Math.floor(response.createdAt / 1000),
    model: response.model,
    choices: [...response.finishes]
      .sort((a, b) => a.candidate - b.candidate)
      .map(({ candidate, finishReason }) => ({
        index: candidate,
        ...toText(response, candidate),
        finish_reason: finishReason,
      })),
    usage: toCompletionUsage(response.usage),
  };
}

function toText({ output }: Response, candidate: number): Record<string, unknown> {
  const messages = output.filter((item) => item.type === "message").filter((item) => item.candidate === candidate);
  const logprobs = messages.flatMap((message) => message.logprobs);
  return {
    text: messages.map((message) => message.text).join(""),
    logprobs: logprobs.length === 0 ? null : toCompletionLogprobs(logprobs, 0),
  };
}
