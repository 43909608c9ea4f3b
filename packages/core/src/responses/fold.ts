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

/**
 * Folds events into the Response. The same events give the same Response on any replica; only the events that carry a
 * whole Response replace it.
 */
export class ResponseFold {
  #response: Response;
  #items: GrowingItem[] = [];
  #finishes: CandidateFinish[] = [];

  constructor(response: Response) {
    this.#response = response;
  }

  apply(event: ResponseEvent): void {
    switch (event.type) {
      case "response.created":
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        this.#response = event.response;
        return;
      case "response.in_progress":
        this.update({
          status: "in_progress",
          runtime: event.runtime,
          startedAt: this.#response.createdAt + event.atMs,
        });
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
    this.#response = { ...this.#response, ...changes };
  }

  setUsage(usage: Usage): void {
    this.update({ usage });
  }

  /** The Response as it is now. */
  snapshot(): Response {
    if (this.#items.length === 0) return this.#response;
    return { ...this.#response, output: this.#items.map(freeze), finishes: [...this.#finishes] };
  }

  /** Without its output: cheap, for lists and status. */
  get head(): Response {
    return this.#response;
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
