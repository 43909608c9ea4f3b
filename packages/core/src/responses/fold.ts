import type { TokenLogprob, Usage } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import type { CandidateFinish, ItemStatus, OutputItem, Response } from "./response.ts";

/** An output item while it grows; texts are gathered in pieces so that a token costs no copy of what came before. */
interface GrowingItem {
  readonly base: OutputItem;
  status: ItemStatus;
  text: string;
  refusal: string;
  readonly logprobs: TokenLogprob[];
}

type Draft = { -readonly [Member in keyof Response]: Response[Member] };

/**
 * Folds events into the Response. The same events give the same Response on any replica; only the events that carry a
 * whole Response replace it.
 */
export class ResponseFold {
  /** Its own copy, changed in place: a token costs no copy of the whole. */
  #draft: Draft;
  #items: GrowingItem[] = [];
  #finishes: CandidateFinish[] = [];

  constructor(response: Response) {
    this.#draft = { ...response };
  }

  apply(event: ResponseEvent): void {
    switch (event.type) {
      case "response.created":
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        this.#draft = { ...event.response };
        return;
      case "response.in_progress":
        this.#draft.status = "in_progress";
        this.#draft.runtime = event.runtime;
        this.#draft.startedAt = this.#draft.createdAt + event.atMs;
        return;
      case "response.output_item.added":
        this.#items.push({ base: event.item, status: "in_progress", text: "", refusal: "", logprobs: [] });
        return;
      case "response.output_text.delta": {
        const item = this.#item(event.index);
        item.text += event.delta;
        if (event.logprobs) item.logprobs.push(...event.logprobs);
        return;
      }
      case "response.reasoning_text.delta":
      case "response.function_call_arguments.delta":
        this.#item(event.index).text += event.delta;
        return;
      case "response.refusal.delta":
        this.#item(event.index).refusal += event.delta;
        return;
      case "response.output_item.done":
        this.#item(event.item.index).status = event.item.status;
        if (event.finishReason !== undefined) this.#finishes.push(finishOf(event));
        return;
      case "response.output_text.done":
      case "response.refusal.done":
      case "response.reasoning_text.done":
      case "response.function_call_arguments.done":
        return;
    }
  }

  /** Changes that no event carries by itself; the terminal event carries them all. */
  update(changes: Partial<Response>): void {
    Object.assign(this.#draft, changes);
  }

  setUsage(usage: Usage): void {
    this.#draft.usage = usage;
  }

  addTimings(timings: Response["timings"]): void {
    this.#draft.timings = { ...this.#draft.timings, ...timings };
  }

  /** The Response as it is now. */
  snapshot(): Response {
    if (this.#items.length === 0) return { ...this.#draft };
    return { ...this.#draft, output: this.#items.map(freeze), finishes: [...this.#finishes] };
  }

  /** Without its output, as it is at this moment: for a look, not to keep. */
  get head(): Response {
    return this.#draft;
  }

  get itemCount(): number {
    return this.#items.length;
  }

  item(index: number): OutputItem {
    return freeze(this.#item(index));
  }

  #item(index: number): GrowingItem {
    const item = this.#items[index];
    if (item === undefined) throw new RangeError(`no output item ${index}`);
    return item;
  }
}

function freeze({ base, status, text, refusal, logprobs }: GrowingItem): OutputItem {
  switch (base.type) {
    case "message":
      return { ...base, status, text, refusal, logprobs };
    case "reasoning":
      return { ...base, status, text };
    case "function_call":
      return { ...base, status, arguments: text };
  }
}

function finishOf(event: Extract<ResponseEvent, { type: "response.output_item.done" }>): CandidateFinish {
  const { item, finishReason = "stop", rawFinishReason } = event;
  return {
    candidate: item.candidate,
    finishReason,
    ...(rawFinishReason === undefined ? {} : { rawFinishReason }),
  };
}
