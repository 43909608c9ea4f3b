import type { CoreError, LogEntry, OutputItem, Problem, Response, TokenLogprob } from "@plenum/core";
import { type ConvertedRequest, renameProblem } from "../converted.ts";
import type { EventSource, ToWireError, WireEvent } from "../event-source.ts";
import { toWireLogprob } from "../logprobs.ts";
import { reasoningPart, refusalPart, textPart, toOutputItem } from "./output-items.ts";
import { type RequestFacts, toResponseObject } from "./response.ts";

export interface ResponsesStreamOptions extends Pick<ConvertedRequest, "param"> {
  readonly request: RequestFacts;
  readonly toWireError: ToWireError;
  /** Where a stream that is read again begins. Absent: at its first event. */
  readonly from?: StreamPlace;
}

/** `after`: what follows this sequence number; `attempt`: what this run of the response has made. */
export type StreamPlace = { readonly after: number } | { readonly attempt: number };

type PartKind = "output_text" | "refusal" | "reasoning_text";

/** An item while its events pass by. */
interface OpenItem {
  readonly item: OutputItem;
  /** Kinds of its parts, by content index. */
  readonly parts: PartKind[];
  readonly logprobs: TokenLogprob[];
}

/**
 * The events of Responses. Content parts, which the log does not have, open at their first delta; `sequence_number`
 * counts the events made, from 0, so the same log always gives the same numbers.
 */
export class ResponsesStream implements EventSource {
  readonly #options: ResponsesStreamOptions;
  readonly #items: OpenItem[] = [];
  #response: Response | undefined;
  #sequence = 0;
  #attempt = 1;
  #hasEnded = false;
  #made: WireEvent[] = [];

  constructor(options: ResponsesStreamOptions) {
    this.#options = options;
  }

  push(entry: LogEntry): readonly WireEvent[] {
    this.#made = [];
    this.#take(entry);
    return this.#made;
  }

  fail(error: CoreError): readonly WireEvent[] {
    this.#made = [];
    this.#error(error);
    return this.#made;
  }

  /** True once a run was cut: what comes after is of another run, and another stream. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  #take({ event }: LogEntry): void {
    switch (event.type) {
      case "response.created":
        this.#create(event.response);
        return;
      case "response.in_progress":
        if (this.#response) this.#whole(event.type, { ...this.#response, status: "in_progress" });
        return;
      case "response.restarted":
        this.#restart(event.attempt);
        return;
      case "response.output_item.added":
        this.#items[event.item.index] = { item: event.item, parts: [], logprobs: [] };
        this.#emit(event.type, { output_index: event.item.index, item: toOutputItem(event.item) });
        return;
      case "response.output_text.delta":
        this.#textDelta(event.index, event.delta, event.logprobs ?? []);
        return;
      case "response.output_text.done": {
        const place = this.#part(event.index, "output_text");
        const { logprobs } = this.#item(event.index);
        this.#emit(event.type, { ...place, text: event.text, logprobs: logprobs.map(toWireLogprob) });
        this.#emit("response.content_part.done", { ...place, part: textPart(event.text, logprobs) });
        return;
      }
      case "response.refusal.delta":
        this.#emit(event.type, { ...this.#part(event.index, "refusal"), delta: event.delta });
        return;
      case "response.refusal.done": {
        const place = this.#part(event.index, "refusal");
        this.#emit(event.type, { ...place, refusal: event.refusal });
        this.#emit("response.content_part.done", { ...place, part: refusalPart(event.refusal) });
        return;
      }
      case "response.reasoning_text.delta":
        this.#emit(event.type, { ...this.#part(event.index, "reasoning_text"), delta: event.delta });
        return;
      case "response.reasoning_text.done": {
        const place = this.#part(event.index, "reasoning_text");
        this.#emit(event.type, { ...place, text: event.text });
        this.#emit("response.content_part.done", { ...place, part: reasoningPart(event.text) });
        return;
      }
      case "response.function_call_arguments.delta":
        this.#emit(event.type, { item_id: event.itemId, output_index: event.index, delta: event.delta });
        return;
      case "response.function_call_arguments.done":
        this.#argumentsDone(event.index, event.arguments);
        return;
      case "response.output_item.done":
        this.#emit(event.type, { output_index: event.item.index, item: toOutputItem(event.item) });
        return;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.#whole(event.type, event.response);
        return;
      case "response.cancelled":
        this.#error(event.response.problem);
        return;
    }
  }

  /** Before a background response runs, its stream says that it waits. */
  #create(response: Response): void {
    this.#response = { ...response, status: response.background ? "queued" : "in_progress" };
    this.#whole("response.created", this.#response);
    if (response.background) this.#whole("response.queued", this.#response);
  }

  /** The stream of the run that was cut ends with an error; that of the next begins. */
  #restart(attempt: number): void {
    const detail = `The service stopped under this run; run ${attempt} follows in a stream of its own.`;
    const before = this.#made.length;
    this.#error({ code: "interrupted", detail, details: {} });
    if (this.#made.length > before) {
      this.#hasEnded = true;
      return;
    }
    this.#attempt = attempt;
    this.#items.length = 0;
    if (this.#response !== undefined) this.#create({ ...this.#response, attempt });
  }

  /** Whether the next event is one of those that were asked for. */
  get #isAsked(): boolean {
    const { from } = this.#options;
    if (this.#hasEnded) return false;
    if (from === undefined) return true;
    return "after" in from ? this.#sequence > from.after : this.#attempt >= from.attempt;
  }

  #textDelta(index: number, delta: string, logprobs: readonly TokenLogprob[]): void {
    this.#item(index).logprobs.push(...logprobs);
    const place = this.#part(index, "output_text");
    this.#emit("response.output_text.delta", { ...place, delta, logprobs: logprobs.map(toWireLogprob) });
  }

  #argumentsDone(index: number, text: string): void {
    const { item } = this.#item(index);
    const name = item.type === "function_call" ? item.name : "";
    this.#emit("response.function_call_arguments.done", {
      item_id: item.id,
      output_index: index,
      name,
      arguments: text,
    });
  }

  /** The part's place, opened when this is its first event. */
  #part(index: number, kind: PartKind): { item_id: string; output_index: number; content_index: number } {
    const { item, parts } = this.#item(index);
    const known = parts.indexOf(kind);
    const place = {
      item_id: item.id,
      output_index: index,
      content_index: known < 0 ? parts.length : known,
    };
    if (known < 0) {
      parts.push(kind);
      this.#emit("response.content_part.added", { ...place, part: emptyPart(kind) });
    }
    return place;
  }

  #item(index: number): OpenItem {
    const open = this.#items[index];
    if (open === undefined) throw new RangeError(`no output item ${index}`);
    return open;
  }

  #whole(type: string, response: Response): void {
    const { request, toWireError, param } = this.#options;
    const renamed =
      response.problem === undefined ? response : { ...response, problem: renameProblem(response.problem, param) };
    this.#emit(type, { response: toResponseObject(renamed, request, toWireError) });
  }

  #error(problem: Problem | undefined): void {
    const { toWireError, param } = this.#options;
    const shown = problem ?? { code: "internal", detail: "The answer ended without a reason.", details: {} };
    const error = toWireError(renameProblem(shown, param));
    const { code, message, param: field } = error;
    // Flat as the event is documented, nested as the official SDKs look for it to throw.
    this.#emit("error", { code, message, param: field, error });
  }

  #emit(type: string, members: Record<string, unknown>): void {
    if (this.#isAsked) {
      this.#made.push({ name: type, json: JSON.stringify({ type, sequence_number: this.#sequence, ...members }) });
    }
    this.#sequence += 1;
  }
}

function emptyPart(kind: PartKind): Record<string, unknown> {
  switch (kind) {
    case "output_text":
      return textPart("", []);
    case "refusal":
      return refusalPart("");
    case "reasoning_text":
      return reasoningPart("");
  }
}
