import type { BackendEvent, FinishReason } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import type { ResponseFold } from "./fold.ts";
import type { ItemStatus, OutputItem } from "./response.ts";

type OutputEvent = Exclude<BackendEvent, { type: "accepted" | "progress" | "usage" }>;

/** Open items of one candidate. */
interface CandidateState {
  /** Index of the open message or reasoning item. */
  open?: number;
  openKind?: "message" | "reasoning";
  /** Call number to item index; calls stay open until something else begins, so that their arguments may interleave. */
  readonly calls: Map<number, number>;
  readonly closedCalls: Set<number>;
  lastItem?: number;
  hasFinished: boolean;
}

/**
 * Turns what a backend pushes into numbered-to-be events: opens and closes items, gives ids. One place for all backends.
 * Every event it makes is applied to the fold before the next is made.
 */
export class Assembler {
  readonly #x: string;
  readonly #fold: ResponseFold;
  readonly #elapsed: () => number;
  readonly #candidates = new Map<number, CandidateState>();
  readonly #itemIds: string[] = [];
  #made: ResponseEvent[] = [];

  /**
   * @param x unique part of the response's id; items are `<kind>_<x>_<n>`.
   * @param elapsed milliseconds since the response was created.
   */
  constructor(x: string, fold: ResponseFold, elapsed: () => number) {
    this.#x = x;
    this.#fold = fold;
    this.#elapsed = elapsed;
  }

  /** Events for one backend event, already applied to the fold. */
  assemble(event: OutputEvent): readonly ResponseEvent[] {
    this.#made = [];
    const state = this.#candidate(event.candidate);
    if (!state.hasFinished) this.#handle(event, state);
    return this.#made;
  }

  /** Closes whatever is still open, when a run ends before its candidates did. */
  closeAll(): readonly ResponseEvent[] {
    this.#made = [];
    for (const state of this.#candidates.values()) {
      if (!state.hasFinished) this.#closeOpen(state, "incomplete");
    }
    return this.#made;
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
        if (event.delta === "" && !event.logprobs?.length) return;
        const place = this.#openItem(state, event.candidate, "message");
        const { delta, logprobs } = event;
        this.#emit({
          type: "response.output_text.delta",
          atMs: this.#elapsed(),
          ...place,
          delta,
          ...(logprobs ? { logprobs } : {}),
        });
        return;
      }
      case "refusal":
        if (event.delta === "") return;
        this.#emit({
          type: "response.refusal.delta",
          atMs: this.#elapsed(),
          ...this.#openItem(state, event.candidate, "message"),
          delta: event.delta,
        });
        return;
      case "reasoning":
        if (event.delta === "") return;
        this.#emit({
          type: "response.reasoning_text.delta",
          atMs: this.#elapsed(),
          ...this.#openItem(state, event.candidate, "reasoning"),
          delta: event.delta,
        });
        return;
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
      state = { calls: new Map(), closedCalls: new Set(), hasFinished: false };
      this.#candidates.set(candidate, state);
    }
    return state;
  }

  #openItem(
    state: CandidateState,
    candidate: number,
    kind: "message" | "reasoning",
  ): { readonly itemId: string; readonly index: number } {
    if (state.open === undefined || state.openKind !== kind) {
      this.#closeOpen(state, "completed");
      const base = { candidate, index: this.#fold.itemCount, status: "in_progress" } as const;
      const item: OutputItem =
        kind === "message"
          ? { ...base, type: "message", id: this.#itemId("msg"), text: "", refusal: "", logprobs: [] }
          : { ...base, type: "reasoning", id: this.#itemId("rs"), text: "" };
      state.open = this.#add(state, item);
      state.openKind = kind;
    }
    return this.#place(state.open);
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
    state.calls.set(event.call, this.#add(state, item));
  }

  #continueCall(event: Extract<BackendEvent, { type: "function_call_arguments" }>, state: CandidateState): void {
    const index = state.calls.get(event.call);
    if (index === undefined || state.closedCalls.has(event.call) || event.delta === "") return;
    this.#emit({
      type: "response.function_call_arguments.delta",
      atMs: this.#elapsed(),
      ...this.#place(index),
      delta: event.delta,
    });
  }

  #finish(event: Extract<BackendEvent, { type: "finish" }>, state: CandidateState): void {
    // An answer without any text still has its message, so that every door has something to render.
    if (state.lastItem === undefined) this.#openItem(state, event.candidate, "message");
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
    delete state.open;
    delete state.openKind;
  }

  #closeMessage(state: CandidateState, status: ItemStatus): void {
    if (state.open !== undefined) this.#close(state.open, status);
    delete state.open;
    delete state.openKind;
  }

  #close(
    index: number,
    status: ItemStatus,
    finish?: { readonly finishReason: FinishReason; readonly rawFinishReason?: string },
  ): void {
    const place = this.#place(index);
    const item = this.#fold.item(index);
    const atMs = this.#elapsed();
    switch (item.type) {
      case "message":
        if (item.refusal !== "") this.#emit({ type: "response.refusal.done", atMs, ...place, refusal: item.refusal });
        if (item.refusal === "" || item.text !== "") {
          this.#emit({ type: "response.output_text.done", atMs, ...place, text: item.text });
        }
        break;
      case "reasoning":
        this.#emit({ type: "response.reasoning_text.done", atMs, ...place, text: item.text });
        break;
      case "function_call":
        this.#emit({ type: "response.function_call_arguments.done", atMs, ...place, arguments: item.arguments });
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

  #add(state: CandidateState, item: OutputItem): number {
    this.#itemIds.push(item.id);
    this.#emit({ type: "response.output_item.added", atMs: this.#elapsed(), item });
    state.lastItem = item.index;
    return item.index;
  }

  #place(index: number): { readonly itemId: string; readonly index: number } {
    return { itemId: this.#itemIds[index] ?? "", index };
  }

  #itemId(kind: string): string {
    return `${kind}_${this.#x}_${this.#fold.itemCount}`;
  }

  #emit(event: ResponseEvent): void {
    this.#fold.apply(event);
    this.#made.push(event);
  }
}
