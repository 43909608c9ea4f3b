import type { EmbeddingResult, OutputFunctionCall, Response } from "@plenum/core";
import { type AnswerParts, type AnswerShape, head, nanoseconds, toolCall, whole } from "./answer-shape.ts";

/**
 * A whole answer as JSON text.
 * @param model name as the client sent it.
 * @throws CoreError invalid-output
 */
export function renderWhole(shape: AnswerShape, model: string, response: Response): string {
  return whole(shape, head(model, response.finishedAt ?? response.createdAt), toParts(response), response);
}

function toParts({ output }: Response): AnswerParts {
  const own = output.filter(({ candidate }) => candidate === 0);
  const messages = own.flatMap((item) => (item.type === "message" ? [item] : []));
  const reasoning = own.flatMap((item) => (item.type === "reasoning" ? [item.text] : []));
  const calls = own.flatMap((item) => (item.type === "function_call" && isComplete(item) ? [item] : []));
  return {
    text: messages.map(({ text, refusal }) => text + refusal).join(""),
    thinking: reasoning.join(""),
    toolCalls: calls.map(toolCall),
    logprobs: messages.flatMap(({ logprobs }) => logprobs),
  };
}

/** A call that the token limit cut is not shown; `done_reason` says why. */
export function isComplete({ status }: OutputFunctionCall): boolean {
  return status === "completed";
}

/** Some clients need all three numbers, also where they are zero. */
export function toWireEmbeddings(model: string, { vectors, timings, inputTokens }: EmbeddingResult) {
  return {
    model,
    embeddings: vectors.map((vector) => [...vector]),
    total_duration: nanoseconds(timings.totalMs),
    load_duration: nanoseconds(timings.loadMs),
    prompt_eval_count: inputTokens,
  };
}
