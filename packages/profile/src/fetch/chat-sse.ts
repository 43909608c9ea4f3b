import type { CallEnd } from "../client/call-end.ts";
import type { PartialEvent, ToolCallStarted } from "../events/event.ts";
import { isCount, isJsonObject, type JsonObject } from "../json.ts";
import { choiceOfItemId } from "../tool-call-item-id.ts";
import { readUsage, toCompletionUsage } from "../usage.ts";
import { ChunkFilter } from "./chunk-filter.ts";
import { toOpenAIError } from "./error-response.ts";
import { data, errorOfEnd, type SseRequest, type SseSource } from "./sse.ts";

interface CallPlace {
  readonly choice: number;
  /** Number of the call in its choice. */
  readonly index: number;
  hasArguments: boolean;
}

interface Choice {
  text: string;
  calls: number;
  isFinished: boolean;
}

/**
 * A chat as `chat.completion.chunk`s: the service's own where events carry them, else rebuilt. What a service left out of
 * its stream (the finish reason, text that came only at the end, usage) is made from the final body.
 */
export class ChatSse implements SseSource {
  readonly #request: SseRequest;
  readonly #filter = new ChunkFilter();
  readonly #calls = new Map<string, CallPlace>();
  readonly #choices = new Map<number, Choice>();
  #head: JsonObject;
  /** Whether the service sends chunks; its first output says. */
  #isExact: boolean | undefined;
  #usage: JsonObject | undefined;
  #hasUsageChunk = false;

  constructor(request: SseRequest) {
    this.#request = request;
    this.#head = {
      id: `chatcmpl-${request.requestId}`,
      object: "chat.completion.chunk",
      created: request.created,
      model: request.model,
    };
  }

  take(event: PartialEvent): string {
    if (event.type === "response.diagnostics") return "";
    if (event.type === "response.usage") this.#usage = event.usage;
    const chunk = this.#filter.take(event);
    if (event.type !== "response.usage") this.#isExact ??= chunk !== undefined;
    if (!this.#isExact) return this.#rebuild(event);
    this.#note(event);
    return chunk === undefined ? "" : this.#exact(chunk);
  }

  end(end: CallEnd): string {
    if (end.event.type !== "response.completed") return data({ error: toOpenAIError(errorOfEnd(end)) });
    const { body } = end.event;
    let text = "";
    const choices = listOf(body["choices"]);
    for (const choice of choices.length > 0 ? choices : this.#guessedChoices()) text += this.#finish(choice);
    if (this.#request.includeUsage && !this.#hasUsageChunk) text += this.#usageChunk(body);
    return `${text}data: [DONE]\n\n`;
  }

  #exact(chunk: JsonObject): string {
    const { id, created, model, object } = chunk;
    if (typeof id === "string") this.#head = { id, object, created, model };
    const choices = listOf(chunk["choices"]);
    if (isJsonObject(chunk["usage"])) {
      this.#hasUsageChunk = true;
      if (choices.length === 0 && !this.#request.includeUsage) return "";
    }
    for (const choice of choices) {
      if (typeof choice["finish_reason"] === "string") this.#choice(indexOf(choice)).isFinished = true;
    }
    return data(chunk);
  }

  /** Keeps in mind what has been streamed, so that the end adds nothing twice. */
  #note(event: PartialEvent): void {
    if (event.type === "response.output_text.delta") this.#choice(event.index).text += event.delta;
    else if (event.type === "response.tool_call.started") this.#start(event);
  }

  #rebuild(event: PartialEvent): string {
    switch (event.type) {
      case "response.output_text.delta": {
        const begun = this.#begin(event.index);
        this.#note(event);
        return begun + this.#chunk(event.index, { content: event.delta });
      }
      case "response.tool_call.started": {
        const begun = this.#begin(choiceOfItemId(event.item_id));
        const { choice, index } = this.#start(event);
        const called = { name: event.name, arguments: "" };
        return (
          begun +
          this.#chunk(choice, { tool_calls: [{ index, id: event.call_id, type: "function", function: called }] })
        );
      }
      case "response.tool_call.delta":
        return this.#arguments(event.call_id, event.arguments_delta);
      case "response.tool_call.completed":
        return this.#calls.get(event.call_id)?.hasArguments ? "" : this.#arguments(event.call_id, event.arguments);
      default:
        return "";
    }
  }

  #start(event: ToolCallStarted): CallPlace {
    const choice = choiceOfItemId(event.item_id);
    const state = this.#choice(choice);
    const place = { choice, index: state.calls, hasArguments: false };
    state.calls += 1;
    this.#calls.set(event.call_id, place);
    return place;
  }

  #arguments(callId: string, text: string): string {
    const place = this.#calls.get(callId);
    if (place === undefined) return "";
    place.hasArguments = true;
    return this.#chunk(place.choice, { tool_calls: [{ index: place.index, function: { arguments: text } }] });
  }

  #choice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const made = { text: "", calls: 0, isFinished: false };
    this.#choices.set(index, made);
    return made;
  }

  /** The chunk that begins a choice, before its first output. */
  #begin(index: number): string {
    if (this.#choices.has(index)) return "";
    this.#choice(index);
    return this.#chunk(index, { role: "assistant", content: "" });
  }

  #finish(choice: JsonObject): string {
    const index = indexOf(choice);
    const message = isJsonObject(choice["message"]) ? choice["message"] : {};
    const begun = this.#isExact ? "" : this.#begin(index);
    const state = this.#choice(index);
    if (state.isFinished) return begun;
    state.isFinished = true;
    const rest = state.text === "" && state.calls === 0 && !this.#isExact ? wholeMessage(message) : undefined;
    const late = rest === undefined ? "" : this.#chunk(index, rest);
    return begun + late + this.#chunk(index, {}, choice["finish_reason"] ?? "stop");
  }

  /** For services that end without a body. */
  #guessedChoices(): readonly JsonObject[] {
    return [...this.#choices].map(([index, { calls }]) => ({
      index,
      finish_reason: calls > 0 ? "tool_calls" : "stop",
    }));
  }

  #usageChunk(body: JsonObject): string {
    const usage = isJsonObject(body["usage"])
      ? body["usage"]
      : this.#usage && toCompletionUsage(readUsage(this.#usage));
    return usage === undefined ? "" : data({ ...this.#head, choices: [], usage });
  }

  #chunk(index: number, delta: JsonObject, finishReason: unknown = null): string {
    const tail = this.#request.includeUsage ? { usage: null } : {};
    return data({ ...this.#head, choices: [{ index, delta, logprobs: null, finish_reason: finishReason }], ...tail });
  }
}

/** A message that was never streamed, as the delta that says all of it. */
function wholeMessage(message: JsonObject): JsonObject | undefined {
  const { content, refusal, reasoning_content: reasoning } = message;
  const calls = listOf(message["tool_calls"]).map((call, index) => ({ index, ...call }));
  const delta = {
    ...(typeof content === "string" && { content }),
    ...(typeof refusal === "string" && { refusal }),
    ...(typeof reasoning === "string" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return Object.keys(delta).length === 0 ? undefined : delta;
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function indexOf({ index }: JsonObject): number {
  return isCount(index) ? index : 0;
}
