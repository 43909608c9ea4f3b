import type { BackendEvent, FinishReason } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import type { ResponseFold } from "./fold.ts";
import type { ItemStatus, OutputItem } from "./response.ts";

type OutputEvent = Exclude<BackendEvent, { type: "accepted" | "progress" | "usage" }>;

/** Open items of one candidate. */
interface CandidateState {
  /** Index of the open message or reasoning item. */
  open: number | undefined;
  openKind: "message" | "reasoning" | undefined;
  /** Call number to item index; calls stay open until something else begins, so that their arguments may interleave. */
  readonly calls: Map<number, number>;
  readonly closedCalls: Set<number>;
  hasItems: boolean;
  hasFinished: boolean;
}

/**
 * Turns what a backend pushes into numbered-to-be events: opens and closes items, gives ids. One place for all backends.
 * Every event it makes is applied to the fold before the next is made.
 */
export class Assembler {
  readonly #x: string;
  readonly #fold: ResponseFold;
  readonly #candidates = new Map<number, CandidateState>();
  readonly #itemIds: string[] = [];
  #batch: ResponseEvent[] = [];
  #atMs = 0;

  /** @param x unique part of the response's id; items are `<kind>_<x>_<n>`. */
  constructor(x: string, fold: ResponseFold) {
    this.#x = x;
    this.#fold = fold;
  }

  /**
   * Appends the events for one backend event to the batch, already applied to the fold.
   * @param atMs milliseconds since the response was created.
   */
  assemble(event: OutputEvent, batch: ResponseEvent[], atMs: number): void {
    this.#batch = batch;
    this.#atMs = atMs;
    const state = this.#candidate(event.candidate);
    if (!state.hasFinished) this.#handle(event, state);
  }

  /** Closes whatever is still open in the fold, when a run ends before its candidates did. */
  closeAll(batch: ResponseEvent[], atMs: number): void {
    this.#batch = batch;
    this.#atMs = atMs;
    const open = this.#fold.openItems;
    for (const { candidate, index } of open) {
      const isLast = !open.some((other) => other.candidate === candidate && other.index > index);
      this.#close(index, isLast ? "incomplete" : "completed");
    }
  }

  /** True when every one of `count` candidates has finished. */
  haveFinished(count: number): boolean {
    let finished = 0;
    for (const state of this.#candidates.values()) if (state.hasFinished) finished += 1;
    return finished >= count;
  }

  #handle(event: OutputEvent, state: CandidateState): void {
    switch (event.type) {
      case "text": {
        const { delta, logprobs } = event;
        if (delta === "" && !logprobs?.length) return;
        const index = this.#openItem(state, event.candidate, "message");
        const itemId = this.#idOf(index);
        const type = "response.output_text.delta";
        const atMs = this.#atMs;
        this.#emit(logprobs ? { type, atMs, itemId, index, delta, logprobs } : { type, atMs, itemId, index, delta });
        return;
      }
      case "refusal": {
        if (event.delta === "") return;
        const index = this.#openItem(state, event.candidate, "message");
        this.#emitDelta("response.refusal.delta", index, event.delta);
        return;
      }
      case "reasoning": {
        if (event.delta === "") return;
        const index = this.#openItem(state, event.candidate, "reasoning");
        this.#emitDelta("response.reasoning_text.delta", index, event.delta);
        return;
      }
      case "function_call":
        this.#beginCall(event, state);
        return;
      case "function_call_arguments":
        this.#continueCall(event, state);
        return;
      case "finish":
        this.#finish(event, state);
        return;
    }
  }

  #candidate(candidate: number): CandidateState {
    let state = this.#candidates.get(candidate);
    if (state === undefined) {
      state = {
        open: undefined,
        openKind: undefined,
        calls: new Map(),
        closedCalls: new Set(),
        hasItems: false,
        hasFinished: false,
      };
      this.#candidates.set(candidate, state);
    }
    return state;
  }

  /** Index of the candidate's open item of this kind, which is opened where there is none. */
  #openItem(state: CandidateState, candidate: number, kind: "message" | "reasoning"): number {
    if (state.open !== undefined && state.openKind === kind) return state.open;
    this.#closeOpen(state, "completed");
    const index = this.#fold.itemCount;
    const status = "in_progress";
    const item: OutputItem =
      kind === "message"
        ? { type: kind, id: this.#itemId("msg"), candidate, index, status, text: "", refusal: "", logprobs: [] }
        : { type: kind, id: this.#itemId("rs"), candidate, index, status, text: "" };
    this.#add(state, item);
    state.open = index;
    state.openKind = kind;
    return index;
  }

  #beginCall(event: Extract<BackendEvent, { type: "function_call" }>, state: CandidateState): void {
    if (state.calls.has(event.call)) return;
    this.#closeMessage(state, "completed");
    const index = this.#fold.itemCount;
    const item: OutputItem = {
      type: "function_call",
      id: this.#itemId("fc"),
      candidate: event.candidate,
      index,
      status: "in_progress",
      callId: event.callId ?? `call_${this.#x}_${index}`,
      name: event.name,
      arguments: "",
    };
    this.#add(state, item);
    state.calls.set(event.call, index);
  }

  #continueCall(event: Extract<BackendEvent, { type: "function_call_arguments" }>, state: CandidateState): void {
    const index = state.calls.get(event.call);
    if (index === undefined || state.closedCalls.has(event.call) || event.delta === "") return;
    this.#emitDelta("response.function_call_arguments.delta", index, event.delta);
  }

  #finish(event: Extract<BackendEvent, { type: "finish" }>, state: CandidateState): void {
    // An answer without any text still has its message, so that every door has something to render.
    if (!state.hasItems) this.#openItem(state, event.candidate, "message");
    const status =
      event.finishReason === "length" || event.finishReason === "content_filter" ? "incomplete" : "completed";
    this.#closeOpen(state, status, event);
    state.hasFinished = true;
  }

  /** Closes open items in order; the candidate's finish stands in the last one. */
  #closeOpen(
    state: CandidateState,
    lastStatus: ItemStatus,
    finish?: { readonly finishReason: FinishReason; readonly rawFinishReason?: string },
  ): void {
    const open: number[] = [];
    for (const [call, index] of state.calls) if (!state.closedCalls.has(call)) open.push(index);
    if (state.open !== undefined) open.push(state.open);
    open.sort((a, b) => a - b);
    for (const [place, index] of open.entries()) {
      const isLast = place === open.length - 1;
      this.#close(index, isLast ? lastStatus : "completed", isLast ? finish : undefined);
    }
    for (const call of state.calls.keys()) state.closedCalls.add(call);
    state.open = undefined;
    state.openKind = undefined;
  }

  #closeMessage(state: CandidateState, status: ItemStatus): void {
    if (state.open !== undefined) this.#close(state.open, status);
    state.open = undefined;
    state.openKind = undefined;
  }

  #close(
    index: number,
    status: ItemStatus,
    finish?: { readonly finishReason: FinishReason; readonly rawFinishReason?: string },
  ): void {
    const item = this.#fold.item(index);
    if (item.type !== "function_call") flatten(item.text);
    const { id: itemId } = item;
    const atMs = this.#atMs;
    switch (item.type) {
      case "message":
        if (item.refusal !== "") {
          this.#emit({ type: "response.refusal.done", atMs, itemId, index, refusal: item.refusal });
        }
        if (item.refusal === "" || item.text !== "") {
          this.#emit({ type: "response.output_text.done", atMs, itemId, index, text: item.text });
        }
        break;
      case "reasoning":
        this.#emit({ type: "response.reasoning_text.done", atMs, itemId, index, text: item.text });
        break;
      case "function_call":
        this.#emit({ type: "response.function_call_arguments.done", atMs, itemId, index, arguments: item.arguments });
        break;
    }
    this.#emit({
      type: "response.output_item.done",
      atMs,
      item: { ...item, status },
      ...(finish ? { finishReason: finish.finishReason } : {}),
      ...(finish?.rawFinishReason === undefined ? {} : { rawFinishReason: finish.rawFinishReason }),
    });
  }

  #add(state: CandidateState, item: OutputItem): void {
    this.#itemIds.push(item.id);
    this.#emit({ type: "response.output_item.added", atMs: this.#atMs, item });
    state.hasItems = true;
  }

  #idOf(index: number): string {
    return this.#itemIds[index] ?? "";
  }

  #emitDelta(
    type: "response.refusal.delta" | "response.reasoning_text.delta" | "response.function_call_arguments.delta",
    index: number,
    delta: string,
  ): void {
    this.#emit({ type, atMs: this.#atMs, itemId: this.#idOf(index), index, delta });
  }

  #itemId(kind: string): string {
    return `${kind}_${this.#x}_${this.#fold.itemCount}`;
  }

  #emit(event: ResponseEvent): void {
    this.#fold.apply(event);
    this.#batch.push(event);
  }
}

/** A text that grew by pieces is a tree of them until somebody looks into it; kept, the tree would be kept. */
function flatten(text: string): void {
  text.charCodeAt(0);
}
