import type { TokenLogprob, Usage } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import type { Outcome } from "./outcome.ts";
import type { CandidateFinish, ItemStatus, OutputItem, Response, Timings } from "./response.ts";

/** An output item while it grows; texts are gathered in pieces so that a token costs no copy of what came before. */
interface GrowingItem {
  readonly base: OutputItem;
  status: ItemStatus;
  text: string;
  refusal: string;
  readonly logprobs: TokenLogprob[];
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };
type Draft = Writable<Response>;

/**
 * Folds events into the Response. The same events give the same Response on any replica; only the events that carry a
 * whole Response replace it.
 */
export class ResponseFold {
  /** Its own copy, changed in place: a token costs no copy of the whole. */
  #draft: Draft;
  #timings: Writable<Timings>;
  #items: GrowingItem[] = [];
  #finishes: CandidateFinish[] = [];

  constructor(response: Response) {
    this.#timings = { ...response.timings };
    this.#draft = draftOf(response, this.#timings);
  }

  apply(event: ResponseEvent): void {
    switch (event.type) {
      case "response.created":
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        this.#timings = { ...event.response.timings };
        this.#draft = draftOf(event.response, this.#timings);
        return;
      case "response.in_progress":
        this.#draft.status = "in_progress";
        this.#draft.runtime = event.runtime;
        this.#draft.startedAt = this.#draft.createdAt + event.atMs;
        return;
      case "response.restarted":
        this.#restart(event.attempt);
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

  /** What came before is void; it waits again. */
  #restart(attempt: number): void {
    this.#draft = { ...withoutRun(this.#draft), attempt };
    this.#timings = {};
    this.#draft.timings = this.#timings;
    this.#items = [];
    this.#finishes = [];
  }

  // What follows no event carries by itself; the terminal event carries it all.

  setRuntime(runtime: string): void {
    this.#draft.runtime = runtime;
  }

  setUsage(usage: Usage): void {
    this.#draft.usage = usage;
  }

  setPriority(priority: number): void {
    this.#draft.priority = priority;
  }

  setDeadline(deadlineMs: number): void {
    this.#draft.deadlineMs = deadlineMs;
  }

  /** Absent ones stay as they are. */
  addTimings(timings: { readonly [Member in keyof Timings]?: number | undefined }): void {
    let name: keyof Timings;
    for (name in timings) {
      const ms = timings[name];
      if (ms !== undefined) this.#timings[name] = ms;
    }
  }

  /** How it ended. */
  setOutcome({ status, problem, incompleteReason }: Outcome, finishedAt: number): void {
    this.#draft.status = status;
    if (problem !== undefined) this.#draft.problem = problem;
    if (incompleteReason !== undefined) this.#draft.incompleteReason = incompleteReason;
    this.#draft.finishedAt = finishedAt;
  }

  /** The Response as it is now. */
  snapshot(): Response {
    const kept: Draft = { ...this.#draft };
    kept.timings = { ...this.#timings };
    if (this.#items.length === 0) return kept;
    kept.output = this.#items.map(freeze);
    kept.finishes = [...this.#finishes];
    return kept;
  }

  /** Without its output, as it is at this moment: for a look, not to keep. */
  get head(): Response {
    return this.#draft;
  }

  get finishes(): readonly CandidateFinish[] {
    return this.#finishes;
  }

  get itemCount(): number {
    return this.#items.length;
  }

  /** Items that are not done, in their order. */
  get openItems(): readonly OutputItem[] {
    return this.#items.filter(({ status }) => status === "in_progress").map(freeze);
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

/** As it was before it ran. */
export function withoutRun(response: Response): Response {
  const { runtime: _runtime, startedAt: _startedAt, usage: _usage, ...rest } = response;
  return { ...rest, status: "queued", output: [], finishes: [], timings: {} };
}

/**
 * A copy that grows member by member. Not by spreading: what grows out of a spread has a hidden class of its own each
 * time, and everything that reads it would look its members up anew.
 */
function draftOf(response: Response, timings: Writable<Timings>): Draft {
  const { id, status, model, door, output, finishes, attempt, priority, createdAt, metadata } = response;
  const draft: Draft = { id, status, model, door, output, finishes, timings, attempt, priority, createdAt, metadata };
  return Object.assign(draft, response, { timings });
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
