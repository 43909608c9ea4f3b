import type { CoreError, LogEntry, Problem, Response, ResponseEvent } from "@plenum/core";
import { type ConvertedRequest, renameProblem } from "../converted.ts";
import type { EventSource, ToWireError, WireEvent } from "../event-source.ts";
import { toCompletionUsage } from "../usage.ts";
import { toCompletionLogprobs } from "./logprobs.ts";
import { completionId } from "./response.ts";

export interface CompletionStreamOptions extends Pick<ConvertedRequest, "param"> {
  readonly includeUsage: boolean;
  readonly toWireError: ToWireError;
}

/** The events of a text completion. */
export class CompletionStream implements EventSource {
  readonly #options: CompletionStreamOptions;
  /** Candidate and characters so far of each item. */
  readonly #items: { readonly candidate: number; length: number }[] = [];
  #fields: Record<string, unknown> = {};

  constructor(options: CompletionStreamOptions) {
    this.#options = options;
  }

  push({ event }: LogEntry): readonly WireEvent[] {
    switch (event.type) {
      case "response.created":
        this.#begin(event.response);
        return [];
      case "response.output_item.added":
        this.#items[event.item.index] = { candidate: event.item.candidate, length: 0 };
        return [];
      case "response.output_text.delta":
        return [this.#delta(event)];
      case "response.output_item.done":
        if (event.finishReason === undefined) return [];
        return [this.#chunk(event.item.candidate, "", null, event.finishReason)];
      case "response.completed":
      case "response.incomplete": {
        if (!this.#options.includeUsage) return [];
        const { usage } = event.response;
        return [{ json: JSON.stringify({ ...this.#fields, choices: [], usage: toCompletionUsage(usage) }) }];
      }
      case "response.failed":
      case "response.cancelled":
        return [this.#error(event.response.problem)];
      default:
        return [];
    }
  }

  fail(error: CoreError): readonly WireEvent[] {
    return [this.#error(error)];
  }

  #begin(response: Response): void {
    this.#fields = {
      id: completionId(response.id),
      object: "text_completion",
      created: Math.floor(response.createdAt / 1000),
      model: response.model,
    };
  }

  #delta({ index, delta, logprobs }: Extract<ResponseEvent, { type: "response.output_text.delta" }>): WireEvent {
    const item = this.#items[index] ?? { candidate: 0, length: 0 };
    const shown = logprobs?.length ? toCompletionLogprobs(logprobs, item.length) : null;
    item.length += delta.length;
    return this.#chunk(item.candidate, delta, shown, null);
  }

  #chunk(index: number, text: string, logprobs: unknown, finishReason: string | null): WireEvent {
    const usage = this.#options.includeUsage ? { usage: null } : {};
    const choices = [{ index, text, logprobs, finish_reason: finishReason }];
    return { json: JSON.stringify({ ...this.#fields, choices, ...usage }) };
  }

  #error(problem: Problem | undefined): WireEvent {
    const { toWireError, param } = this.#options;
    const shown = problem ?? { code: "internal", detail: "The answer ended without a reason.", details: {} };
    return { json: JSON.stringify({ error: toWireError(renameProblem(shown, param)) }) };
  }
}
