import type { CoreError, LogEntry, OutputItem, Problem, Response, ResponseEvent, TokenLogprob } from "@plenum/core";
import { type ConvertedRequest, renameProblem } from "../converted.ts";
import type { EventSource, ToWireError, WireEvent } from "../event-source.ts";
import { toWireLogprob } from "../logprobs.ts";
import { toCompletionUsage } from "../usage.ts";
import { chatId } from "./response.ts";

export interface ChatStreamOptions extends Pick<ConvertedRequest, "param"> {
  readonly includeUsage: boolean;
  readonly toWireError: ToWireError;
}

/** Place of an open item among its candidate's choices. */
interface ItemPlace {
  readonly candidate: number;
  /** Number of the tool call within its candidate; -1 for other items. */
  readonly call: number;
}

/** The events of a chat as `chat.completion.chunk`s. */
export class ChatStream implements EventSource {
  readonly #options: ChatStreamOptions;
  readonly #items: ItemPlace[] = [];
  /** Tool calls begun by each candidate that has begun. */
  readonly #calls = new Map<number, number>();
  /** What every chunk begins and ends with. */
  #head = "";
  readonly #tail: string;

  constructor(options: ChatStreamOptions) {
    this.#options = options;
    // A client that asked for usage finds it null before the last chunk.
    this.#tail = options.includeUsage ? `],"usage":null}` : "]}";
  }

  push({ event }: LogEntry): readonly WireEvent[] {
    switch (event.type) {
      case "response.created":
        this.#begin(event.response);
        return [];
      case "response.output_item.added":
        return this.#open(event.item);
      case "response.output_text.delta":
        return [this.#delta(event.index, `{"content":${JSON.stringify(event.delta)}}`, toLogprobs(event.logprobs))];
      case "response.refusal.delta":
        return [this.#delta(event.index, `{"refusal":${JSON.stringify(event.delta)}}`)];
      case "response.reasoning_text.delta":
        return [this.#delta(event.index, `{"reasoning_content":${JSON.stringify(event.delta)}}`)];
      case "response.function_call_arguments.delta":
        return [this.#arguments(event.index, event.delta)];
      case "response.output_item.done":
        return this.#finish(event);
      case "response.completed":
      case "response.incomplete":
        return this.#options.includeUsage ? [this.#usage(event.response)] : [];
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
    const fields = {
      id: chatId(response.id),
      object: "chat.completion.chunk",
      created: Math.floor(response.createdAt / 1000),
      model: response.model,
    };
    this.#head = `${JSON.stringify(fields).slice(0, -1)},"choices":[`;
  }

  #open(item: OutputItem): WireEvent[] {
    const { candidate } = item;
    const begun = this.#calls.get(candidate);
    const call = item.type === "function_call" ? (begun ?? 0) : -1;
    this.#items[item.index] = { candidate, call };
    this.#calls.set(candidate, item.type === "function_call" ? call + 1 : (begun ?? 0));
    const events: WireEvent[] = [];
    if (begun === undefined) {
      // An empty text would begin a text part in readers of an answer that has none.
      const content = item.type === "message" ? '""' : "null";
      events.push(this.#chunk(candidate, `{"role":"assistant","content":${content},"refusal":null}`));
    }
    if (item.type === "function_call") {
      const opened = { index: call, id: item.callId, type: "function", function: { name: item.name, arguments: "" } };
      events.push(this.#chunk(candidate, JSON.stringify({ tool_calls: [opened] })));
    }
    return events;
  }

  #arguments(index: number, delta: string): WireEvent {
    const call = this.#items[index]?.call ?? 0;
    return this.#delta(index, `{"tool_calls":[{"index":${call},"function":{"arguments":${JSON.stringify(delta)}}}]}`);
  }

  #finish({ item, finishReason }: Extract<ResponseEvent, { type: "response.output_item.done" }>): WireEvent[] {
    return finishReason === undefined ? [] : [this.#chunk(item.candidate, "{}", "null", `"${finishReason}"`)];
  }

  #delta(index: number, delta: string, logprobs = "null"): WireEvent {
    return this.#chunk(this.#items[index]?.candidate ?? 0, delta, logprobs);
  }

  /** Put together around the delta: this is the one line that every token costs. */
  #chunk(candidate: number, delta: string, logprobs = "null", finishReason = "null"): WireEvent {
    const choice = `{"index":${candidate},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finishReason}}`;
    return { json: this.#head + choice + this.#tail };
  }

  #usage({ usage }: Response): WireEvent {
    return { json: `${this.#head}],"usage":${JSON.stringify(toCompletionUsage(usage))}}` };
  }

  #error(problem: Problem | undefined): WireEvent {
    const { toWireError, param } = this.#options;
    const shown = problem ?? { code: "internal", detail: "The answer ended without a reason.", details: {} };
    return { json: JSON.stringify({ error: toWireError(renameProblem(shown, param)) }) };
  }
}

function toLogprobs(logprobs: readonly TokenLogprob[] | undefined): string {
  if (!logprobs?.length) return "null";
  return JSON.stringify({ content: logprobs.map(toWireLogprob), refusal: null });
}
