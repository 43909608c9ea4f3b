import { type BackendEvent, type BackendRequest, CoreError, type TokenLogprob } from "@plenum/core";
import { contentOf, finishReasonOf, isFailedFinish, logprobsOf, reasoningOf } from "./chunk-fields.ts";
import { isLoose, type Loose, listOf } from "./loose.ts";
import { TaggedText } from "./tagged-text.ts";
import { ToolCalls } from "./tool-calls.ts";

const noLogprobs: readonly TokenLogprob[] = [];

/** One answer of a request, from its choices in the chunks. */
export class Candidate {
  readonly #index: number;
  readonly #text: TaggedText;
  readonly #calls: ToolCalls;
  readonly #wantsLogprobs: boolean;
  #rawFinish: string | undefined;
  /** A choice of it has come. */
  hasBegun = false;
  /** Chunks that carried something. */
  deltas = 0;

  constructor(index: number, request: BackendRequest) {
    const { input, parallelToolCalls, sampling } = request;
    this.#index = index;
    this.#text = new TaggedText(index, input.kind === "items" || !(input.raw || input.suffix));
    this.#calls = new ToolCalls(index, parallelToolCalls);
    this.#wantsLogprobs = sampling.logprobs !== undefined;
  }

  /** The server said that this answer has ended. */
  get hasFinished(): boolean {
    return this.#rawFinish !== undefined;
  }

  /** @param writeObject exact JSON text of arguments that came as an object */
  take(choice: Loose, events: BackendEvent[], writeObject: (value: unknown) => string): void {
    this.hasBegun = true;
    const before = events.length;
    const { delta, message, text, finish_reason: finish } = choice;
    const logprobs = this.#wantsLogprobs ? logprobsOf(choice["logprobs"]) : [];
    const part = isLoose(delta) ? delta : message;
    if (isLoose(part)) this.#takeDelta(part, logprobs, events, writeObject);
    else if (typeof text === "string") this.#text.push(text, logprobs, events);
    if (events.length > before) this.deltas += 1;
    if (typeof finish === "string" && finish !== "") this.#finish(finish);
  }

  /** A chunk that carries a piece of text and nothing else. */
  takeText(text: string, events: BackendEvent[]): void {
    const before = events.length;
    this.#text.push(text, noLogprobs, events);
    if (events.length > before) this.deltas += 1;
  }

  /** Gives what is held back, and the end. */
  end(events: BackendEvent[]): void {
    this.#text.end(events);
    this.#calls.end();
    const raw = this.#rawFinish;
    events.push({
      type: "finish",
      candidate: this.#index,
      finishReason: finishReasonOf(raw ?? "stop", this.#calls.hasCalls),
      ...(raw === undefined ? {} : { rawFinishReason: raw }),
    });
  }

  #takeDelta(
    delta: Loose,
    logprobs: ReturnType<typeof logprobsOf>,
    events: BackendEvent[],
    writeObject: (value: unknown) => string,
  ): void {
    const { refusal, tool_calls: calls, function_call: oldCall } = delta;
    const thoughts = reasoningOf(delta);
    if (thoughts !== "") {
      this.#text.noteOwnThoughts(events);
      events.push({ type: "reasoning", candidate: this.#index, delta: thoughts });
    }
    const text = contentOf(delta);
    if (text !== "" || logprobs.length > 0) this.#text.push(text, logprobs, events);
    if (typeof refusal === "string" && refusal !== "") {
      events.push({ type: "refusal", candidate: this.#index, delta: refusal });
    }
    for (const call of listOf(calls)) if (isLoose(call)) this.#calls.take(call, events, writeObject);
    if (isLoose(oldCall)) this.#calls.take({ index: 0, function: oldCall }, events, writeObject);
  }

  #finish(raw: string): void {
    if (isFailedFinish(raw)) throw new CoreError("backend-error", `The runtime gave the answer up (${raw}).`);
    this.#rawFinish ??= raw;
  }
}
