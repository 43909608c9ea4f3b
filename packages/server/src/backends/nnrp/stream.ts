import type { BackendEvent, BackendRequest, BackendSink } from "@plenum/core";
import {
  ChunkFilter,
  choiceOfItemId,
  type JsonObject,
  type PartialEvent,
  readUsage,
  type ToolCallStarted,
  toCompletionUsage,
} from "@plenum/profile";
import { writeJson } from "../shared/exact-json.ts";
import { Candidate } from "../shared/openai/candidate.ts";
import { logprobsOf, reasoningOf, usageEvent } from "../shared/openai/chunk-fields.ts";
import { countOf, isLoose, type Loose, listOf } from "../shared/openai/loose.ts";

interface CallPlace {
  readonly candidate: number;
  /** Number of the call in its candidate. */
  readonly index: number;
  hasArguments: boolean;
}

/**
 * The profile's events as core events: OpenAI's own chunks where events carry them (they know thoughts and log
 * probabilities), else the events themselves. What was not streamed is taken from the final body.
 */
export class AnswerReader {
  readonly #sink: BackendSink;
  readonly #filter = new ChunkFilter();
  readonly #candidates: readonly Candidate[];
  readonly #calls = new Map<string, CallPlace>();
  #events: BackendEvent[] = [];
  #isFlushing = false;
  /** Whether the service sends chunks; its first output says. */
  #isExact: boolean | undefined;
  #isAccepted = false;
  #usage: Loose = {};
  #timings: Loose = {};

  constructor(request: BackendRequest, sink: BackendSink) {
    this.#sink = sink;
    this.#candidates = Array.from({ length: request.candidates }, (_, index) => new Candidate(index, request));
  }

  /** The service has taken the request. */
  accept(facts: { readonly isWhole?: true } = {}): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#events.push({ type: "accepted", ...facts });
  }

  /** @throws CoreError backend-error for an answer that was given up */
  take(event: PartialEvent): void {
    this.accept();
    if (event.type !== "response.diagnostics") this.#takeOutput(event);
    this.#flushSoon();
  }

  /** The final body. @throws CoreError backend-error */
  end(body: JsonObject): void {
    this.accept();
    for (const [place, choice] of listOf(body["choices"]).entries()) if (isLoose(choice)) this.#finish(choice, place);
    for (const candidate of this.#candidates) candidate.end(this.#events);
    const usage = isLoose(body["usage"]) ? toCompletionUsage(readUsage(body["usage"])) : this.#usage;
    const timings = isLoose(body["timings"]) ? body["timings"] : this.#timings;
    const deltas = this.#candidates.reduce((sum, candidate) => sum + candidate.deltas, 0);
    this.#events.push(usageEvent(usage, timings, deltas, this.#candidates.length));
    this.flush();
  }

  /** Gives out what has been read. */
  flush(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#sink(events);
  }

  /** Events of one read come in one run of microtasks; they become one batch. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    process.nextTick(() => {
      this.#isFlushing = false;
      this.flush();
    });
  }

  #takeOutput(event: Exclude<PartialEvent, { type: "response.diagnostics" }>): void {
    if (event.type === "response.usage") this.#usage = toCompletionUsage(readUsage(event.usage));
    const chunk = this.#filter.take(event);
    if (event.type !== "response.usage") this.#isExact ??= chunk !== undefined;
    if (!this.#isExact) this.#takeEvent(event);
    else if (chunk !== undefined) this.#takeChunk(chunk);
  }

  #takeChunk(chunk: JsonObject): void {
    const { choices, usage, timings } = chunk;
    if (isLoose(usage)) this.#usage = usage;
    if (isLoose(timings)) this.#timings = timings;
    for (const choice of listOf(choices)) {
      if (isLoose(choice)) this.#candidates[countOf(choice["index"]) ?? 0]?.take(choice, this.#events, writeJson);
    }
  }

  #takeEvent(event: PartialEvent): void {
    switch (event.type) {
      case "response.output_text.delta": {
        const candidate = this.#candidates[event.index];
        if (candidate === undefined) return;
        candidate.hasBegun = true;
        candidate.takeText(event.delta, this.#events);
        return;
      }
      case "response.tool_call.started":
        this.#begin(event);
        return;
      case "response.tool_call.delta":
        this.#arguments(event.call_id, event.arguments_delta);
        return;
      case "response.tool_call.completed":
        if (this.#calls.get(event.call_id)?.hasArguments === false) this.#arguments(event.call_id, event.arguments);
        return;
      default:
        return;
    }
  }

  #begin({ item_id: itemId, call_id: id, name }: ToolCallStarted): void {
    const candidate = choiceOfItemId(itemId);
    const index = [...this.#calls.values()].filter((other) => other.candidate === candidate).length;
    this.#calls.set(id, { candidate, index, hasArguments: false });
    this.#takeCall(candidate, { index, id, function: { name } });
  }

  #arguments(callId: string, text: string): void {
    const place = this.#calls.get(callId);
    if (place === undefined) return;
    place.hasArguments = true;
    this.#takeCall(place.candidate, { index: place.index, function: { arguments: text } });
  }

  #takeCall(candidate: number, call: object): void {
    this.#candidates[candidate]?.take({ delta: { tool_calls: [call] } }, this.#events, writeJson);
  }

  /** The end of a choice, and what of it was never streamed. */
  #finish(choice: Loose, place: number): void {
    const candidate = this.#candidates[countOf(choice["index"]) ?? place];
    if (candidate === undefined || candidate.hasFinished) return;
    candidate.take(candidate.hasBegun ? this.#restOf(choice) : choice, this.#events, writeJson);
  }

  /** Events without chunks know no thoughts, refusals and log probabilities. */
  #restOf({ finish_reason, message, logprobs }: Loose): Loose {
    if (this.#isExact || !isLoose(message)) return { finish_reason };
    const { refusal } = message;
    const delta = { reasoning_content: reasoningOf(message), refusal };
    return { finish_reason, delta, ...(logprobsOf(logprobs).length > 0 ? { logprobs } : {}) };
  }
}
