import { type OutputItem, type OutputMessage, type Response, uniquePart } from "@plenum/core";
import { toWireLogprob } from "../logprobs.ts";
import { toCompletionUsage } from "../usage.ts";

/** `chatcmpl-<x>` of the response `resp_<x>`. */
export function chatId(id: string): string {
  return `chatcmpl-${uniquePart(id)}`;
}

/** A whole answer as `chat.completion`. */
export function toChatCompletion(response: Response): Record<string, unknown> {
  return {
    id: chatId(response.id),
    object: "chat.completion",
    created: Math.floor(response.createdAt / 1000),
    model: response.model,
    choices: [...response.finishes]
      .sort((a, b) => a.candidate - b.candidate)
      .map(({ candidate, finishReason }) => {
        const items = response.output.filter((item) => item.candidate === candidate);
        return {
          index: candidate,
          message: toMessage(items),
          logprobs: toLogprobs(items),
          finish_reason: finishReason,
        };
      }),
    usage: toCompletionUsage(response.usage),
  };
}

function messagesOf(items: readonly OutputItem[]): readonly OutputMessage[] {
  return items.filter((item) => item.type === "message");
}

function toMessage(items: readonly OutputItem[]): Record<string, unknown> {
  const messages = messagesOf(items);
  const calls = items.filter((item) => item.type === "function_call");
  const text = messages.map((message) => message.text).join("");
  const refusal = messages.map((message) => message.refusal).join("");
  const reasoning = items.map((item) => (item.type === "reasoning" ? item.text : "")).join("");
  return {
    role: "assistant",
    content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.callId,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  };
}

function toLogprobs(items: readonly OutputItem[]): Record<string, unknown> | null {
  const logprobs = messagesOf(items).flatMap((message) => message.logprobs);
  return logprobs.length === 0 ? null : { content: logprobs.map(toWireLogprob), refusal: null };
}
