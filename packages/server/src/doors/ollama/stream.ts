import { type LogEntry, type Problem, type ResponseEvent, toCoreError } from "@plenum/core";
import type { ResponseHeaders } from "../shared/door.ts";
import type { StreamRenderer } from "../shared/stream-response.ts";
import { type AnswerParts, type AnswerShape, headsOf, piece, toolCall, whole } from "./answer-shape.ts";
import { errorText } from "./errors.ts";
import { isComplete } from "./response.ts";

export interface RendererOptions {
  readonly shape: AnswerShape;
  /** Name as the client sent it. */
  readonly model: string;
  readonly headers: ResponseHeaders;
  /** Path of the request; some errors have other words on other paths. */
  readonly path: string;
}

/** NDJSON: a line for each piece of output, a last one with `done: true` or with `error`. */
export function createRenderer({ shape, model, headers, path }: RendererOptions): StreamRenderer {
  let createdAt = 0;
  let calls = 0;
  let hasEnded = false;

  const endWith = (problem: Problem): string => {
    hasEnded = true;
    return `${JSON.stringify({ error: errorText(problem, path) })}\n`;
  };
  const head = headsOf(model);
  const line = (event: ResponseEvent, parts: AnswerParts): string =>
    `${piece(shape, head(createdAt + event.atMs), parts)}\n`;

  const renderEvent = (event: ResponseEvent): string => {
    switch (event.type) {
      case "response.created":
        createdAt = event.response.createdAt;
        return "";
      case "response.output_text.delta":
        return line(event, { text: event.delta, ...(event.logprobs ? { logprobs: event.logprobs } : {}) });
      case "response.refusal.delta":
        return line(event, { text: event.delta });
      case "response.reasoning_text.delta":
        return line(event, { thinking: event.delta });
      case "response.output_item.done":
        if (event.item.type !== "function_call" || !isComplete(event.item)) return "";
        return line(event, { toolCalls: [toolCall(event.item, calls++)] });
      case "response.completed":
      case "response.incomplete":
        return `${whole(shape, head(createdAt + event.atMs), {}, event.response)}\n`;
      case "response.failed":
      case "response.cancelled":
        return endWith(event.response.problem ?? toCoreError(event.type));
      default:
        return "";
    }
  };

  return {
    headers: { "content-type": "application/x-ndjson", ...headers },
    startsWith: ({ event }: LogEntry) => isOutput(event),
    render({ event }) {
      if (hasEnded) return "";
      try {
        return renderEvent(event);
      } catch (error) {
        return endWith(toCoreError(error));
      }
    },
    expired: endWith,
  };
}

/** Headers leave with the first line that holds output: a problem before it has a status of its own. */
function isOutput(event: ResponseEvent): boolean {
  switch (event.type) {
    case "response.output_text.delta":
    case "response.refusal.delta":
    case "response.reasoning_text.delta":
    case "response.completed":
    case "response.incomplete":
      return true;
    case "response.output_item.done":
      return event.item.type === "function_call" && isComplete(event.item);
    default:
      return false;
  }
}
