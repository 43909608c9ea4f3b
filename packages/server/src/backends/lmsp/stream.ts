import { isTerminalEvent, type LmspEvent, type LmspResponse } from "@plenum/client";
import { type BackendEvent, type BackendSink, CoreError, type FinishReason, type TokenLogprob } from "@plenum/core";
import { ofProblem } from "./errors.ts";

interface OpenItem {
  readonly candidate: number;
  /** Of a call: which one of its candidate, from 0. */
  readonly call: number;
}

/** Turns the events of a response over there into those of a backend. */
export class EventReader {
  readonly #candidates: number;
  readonly #batches: Batches;
  readonly #items = new Map<string, OpenItem>();
  readonly #calls = new Map<number, number>();
  readonly #finished = new Set<number>();
  #isAccepted = false;
  #hasEnded = false;

  /** @param candidates answers that were asked for */
  constructor(candidates: number, sink: BackendSink) {
    this.#candidates = candidates;
    this.#batches = new Batches(sink);
  }

  /** @throws CoreError when the response failed over there */
  take(event: LmspEvent): void {
    if (isTerminalEvent(event)) {
      this.#end(event.response);
      return;
    }
    const push = this.#batches.push;
    switch (event.type) {
      case "response.in_progress":
        this.#accept();
        return;
      case "response.progress":
        push({ type: "progress", progress: toProgress(event) });
        return;
      case "response.output_item.added":
        this.#begin(event.item);
        return;
      case "response.output_text.delta": {
        const { candidate } = this.#item(event.item_id);
        const logprobs = event.logprobs?.map(toLogprob);
        push({ type: "text", candidate, delta: event.delta, ...(logprobs === undefined ? {} : { logprobs }) });
        return;
      }
      case "response.refusal.delta":
        push({ type: "refusal", candidate: this.#item(event.item_id).candidate, delta: event.delta });
        return;
      case "response.reasoning_text.delta":
        push({ type: "reasoning", candidate: this.#item(event.item_id).candidate, delta: event.delta });
        return;
      case "response.function_call_arguments.delta":
        push({ type: "function_call_arguments", ...this.#item(event.item_id), delta: event.delta });
        return;
      case "response.output_item.done":
        if (event.finish_reason !== undefined) {
          this.#finish(event.item.candidate, event.finish_reason, event.raw_finish_reason);
        }
        return;
      case "response.restarted":
        throw new CoreError("backend-error", "The runtime began its answer again; what came before is void.");
      // The done events repeat what their deltas said, and newer services may send more.
      default:
        return;
    }
  }

  /** Pushes what waits. */
  flush(): void {
    this.#batches.flush();
  }

  /** @throws CoreError when the stream had no end */
  end(): void {
    this.flush();
    if (!this.#hasEnded) throw new CoreError("backend-error", "The runtime's answer has no end.");
  }

  /** Nothing more is pushed. */
  stop(): void {
    this.#batches.stop();
  }

  #accept(): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#batches.push({ type: "accepted" });
  }

  #begin(item: Extract<LmspEvent, { type: "response.output_item.added" }>["item"]): void {
    const { candidate } = item;
    const call = this.#calls.get(candidate) ?? 0;
    this.#items.set(item.id, { candidate, call });
    if (item.type !== "function_call") return;
    this.#calls.set(candidate, call + 1);
    this.#batches.push({ type: "function_call", candidate, call, name: item.name, callId: item.call_id });
  }

  /** @throws CoreError */
  #item(id: string): OpenItem {
    const item = this.#items.get(id);
    if (item === undefined) throw new CoreError("backend-error", "The runtime's answer continues what never began.");
    return item;
  }

  #finish(candidate: number, reason: string, rawFinishReason: string | undefined): void {
    if (this.#finished.has(candidate)) return;
    this.#finished.add(candidate);
    this.#batches.push({
      type: "finish",
      candidate,
      finishReason: finishReasons.get(reason) ?? "stop",
      rawFinishReason: rawFinishReason ?? reason,
    });
  }

  #end(response: LmspResponse): void {
    this.#hasEnded = true;
    const { status, usage, timings, problem, incomplete_reason: why } = response;
    if (status === "failed" || status === "cancelled") {
      throw problem === undefined
        ? new CoreError("backend-error", "The runtime gave the answer up.")
        : ofProblem(problem);
    }
    this.#accept();
    for (let candidate = 0; candidate < this.#candidates; candidate += 1) {
      this.#finish(candidate, status === "incomplete" ? (why ?? "length") : "stop", undefined);
    }
    this.#batches.push({
      type: "usage",
      usage: {
        inputTokens: usage?.input_tokens ?? 0,
        outputTokens: usage?.output_tokens ?? 0,
        cachedInputTokens: usage?.cached_input_tokens ?? 0,
        reasoningTokens: usage?.reasoning_tokens ?? 0,
      },
      ...(timings?.load === undefined ? {} : { loadMs: timings.load }),
      ...(timings?.prompt === undefined ? {} : { promptMs: timings.prompt }),
      ...(timings?.generation === undefined ? {} : { generationMs: timings.generation }),
    });
  }
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["max_output_tokens", "length"],
  ["tool_calls", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** Everything that one read brought is pushed at once: the client gives events one by one, without a pause between them. */
class Batches {
  readonly #sink: BackendSink;
  #events: BackendEvent[] = [];
  #timer: NodeJS.Immediate | undefined;

  constructor(sink: BackendSink) {
    this.#sink = sink;
  }

  readonly push = (event: BackendEvent): void => {
    this.#events.push(event);
    this.#timer ??= setImmediate(() => this.flush());
  };

  flush(): void {
    const events = this.#events;
    this.stop();
    if (events.length > 0) this.#sink(events);
  }

  stop(): void {
    if (this.#timer !== undefined) clearImmediate(this.#timer);
    this.#timer = undefined;
    this.#events = [];
  }
}

function toProgress(event: Extract<LmspEvent, { type: "response.progress" }>) {
  switch (event.kind) {
    case "queued": {
      const { position, expected_wait_ms: waitMs } = event;
      return { kind: "queued", position, ...(waitMs === undefined ? {} : { expectedWaitMs: waitMs }) } as const;
    }
    case "prompt":
      return { kind: "prompt", doneTokens: event.done_tokens, totalTokens: event.total_tokens } as const;
    default:
      return { kind: "loading" } as const;
  }
}

function toLogprob({ token, logprob, bytes, top_logprobs: top }: WireLogprob): TokenLogprob {
  return { token, logprob, bytes, top };
}

type WireLogprob = NonNullable<Extract<LmspEvent, { type: "response.output_text.delta" }>["logprobs"]>[number];
