import type { LogEntry, OutputItem, Response, RunProgress, Usage } from "@plenum/core";
import { type Progress, StageCode } from "@plenum/nnrp";
import {
  type Diagnostics,
  type EventWriter,
  type Usage as ProfileUsage,
  profileError,
  type ToolCallPlace,
  toolCallItemId,
} from "@plenum/profile";
import type { EventSource, WireEvent } from "../shared/openai/event-source.ts";

export interface RendererOptions {
  readonly writer: EventWriter;
  /** What `index` and `item_id` count: a chat's choices and calls, or the output of Responses. */
  readonly counts: "choices" | "output";
  /** False: only what is not output is sent before the end. */
  readonly isStream: boolean;
  /** OpenAI's own chunks, for those who asked for them. */
  readonly source?: EventSource;
  /** What can be told at the response's end beside the response itself. */
  readonly diagnose: () => Diagnostics;
}

/** How a response ended. */
export interface Ending {
  readonly response: Response;
  /** OpenAI's own last event. */
  readonly chunk?: string;
}

/** An open item: whose it is, and its call. */
interface OpenItem {
  readonly candidate: number;
  readonly callId: string;
}

const none: readonly WireEvent[] = [];

/** Makes the profile's events of a log: a pure function of the log and the request, so that a replay is the same. */
export class ProfileRenderer {
  readonly #options: RendererOptions;
  readonly #items: OpenItem[] = [];
  /** Calls of each candidate so far. */
  readonly #calls = new Map<number, number>();
  readonly #callIds = new Set<string>();

  constructor(options: RendererOptions) {
    this.#options = options;
  }

  /**
   * @param partials takes the events of the entry, each for one PARTIAL_RESULT.
   * @returns the end, when this entry is it.
   */
  push(entry: LogEntry, partials: string[]): Ending | undefined {
    const { event } = entry;
    switch (event.type) {
      case "response.created":
        this.begin(event.response.id, partials);
        break;
      case "response.completed":
      case "response.incomplete":
        this.#usage(entry, event.response, partials);
        this.complete(event.response, partials);
        return { response: event.response };
      case "response.failed":
      case "response.cancelled":
        return this.#fail(entry, event.response);
      default:
        break;
    }
    if (this.#options.isStream) this.#output(entry, partials);
    return undefined;
  }

  #output(entry: LogEntry, partials: string[]): void {
    const { writer, source, counts } = this.#options;
    const chunk = source === undefined ? undefined : this.#lastChunk(source.push(entry), partials);
    const { event } = entry;
    switch (event.type) {
      case "response.output_text.delta": {
        const index = counts === "choices" ? (this.#items[event.index]?.candidate ?? 0) : event.index;
        partials.push(writer.textDelta(index, event.delta, chunk));
        return;
      }
      case "response.output_item.added": {
        const place = this.#open(event.item);
        if (place === undefined || event.item.type !== "function_call") break;
        partials.push(writer.toolCallStarted(place, event.item.name, chunk));
        return;
      }
      case "response.function_call_arguments.delta":
        partials.push(writer.toolCallDelta(this.#items[event.index]?.callId ?? "", event.delta, chunk));
        return;
      case "response.output_item.done":
        if (event.item.type !== "function_call") break;
        partials.push(this.#close(event.item, chunk));
        return;
      default:
        break;
    }
    this.#bare(chunk, partials);
  }

  /** Notes a new item. @returns the place of a call. */
  #open(item: OutputItem): ToolCallPlace | undefined {
    const { candidate } = item;
    if (item.type !== "function_call") {
      this.#items[item.index] = { candidate, callId: "" };
      return undefined;
    }
    const call = this.#calls.get(candidate) ?? 0;
    this.#calls.set(candidate, call + 1);
    // Runtimes exist that number the calls of each choice anew; readers tell calls apart by their ids alone.
    const callId = this.#callIds.has(item.callId) ? item.id : item.callId;
    this.#callIds.add(callId);
    this.#items[item.index] = { candidate, callId };
    return this.#options.counts === "choices"
      ? { index: call, itemId: toolCallItemId(candidate, call), callId }
      : { index: item.index, itemId: item.id, callId };
  }

  /** A call that was cut off is no call. */
  #close({ index, status }: OutputItem, chunk: string | undefined): string {
    const { writer } = this.#options;
    const callId = this.#items[index]?.callId ?? "";
    if (status !== "incomplete") return writer.toolCallCompleted(callId, chunk);
    const error = profileError("tool_call_stream_interrupted", "The answer ended inside this call.");
    return writer.toolCallFailed(callId, error, chunk);
  }

  /** The id is told first, so that whoever loses the connection knows what to ask for. */
  begin(id: string, partials: string[]): void {
    const { writer, diagnose } = this.#options;
    const { transport, traceparent } = diagnose();
    const event = writer.diagnostics({
      responseId: id,
      ...(transport === undefined ? {} : { transport }),
      ...(traceparent === undefined ? {} : { traceparent }),
    });
    if (event !== undefined) partials.push(event);
  }

  /** What follows the output. */
  complete(response: Response, partials: string[]): void {
    const { writer, diagnose } = this.#options;
    const event = writer.diagnostics({ ...diagnose(), ...diagnosticsOf(response) });
    if (event !== undefined) partials.push(event);
  }

  /** The last event of Responses need not go: the body that follows is all of it. */
  #usage(entry: LogEntry, { usage }: Response, partials: string[]): void {
    const { writer, source, isStream, counts } = this.#options;
    if (!isStream) return;
    const chunk = counts === "choices" && source ? this.#lastChunk(source.push(entry), partials) : undefined;
    if (usage === undefined) this.#bare(chunk, partials);
    else partials.push(writer.usage(toProfileUsage(usage), chunk));
  }

  #fail(entry: LogEntry, response: Response): Ending {
    const { source, isStream, counts } = this.#options;
    const chunk = isStream && counts === "output" ? source?.push(entry).at(-1)?.json : undefined;
    return chunk === undefined ? { response } : { response, chunk };
  }

  /** The last chunk goes along with the entry's own event, those before it go by themselves. */
  #lastChunk(chunks: readonly WireEvent[] = none, partials: string[]): string | undefined {
    for (let at = 0; at < chunks.length - 1; at += 1) this.#bare(chunks[at]?.json, partials);
    return chunks.at(-1)?.json;
  }

  #bare(chunk: string | undefined, partials: string[]): void {
    const event = chunk === undefined ? undefined : this.#options.writer.openAIChunk(chunk);
    if (event !== undefined) partials.push(event);
  }
}

function toProfileUsage(usage: Usage): ProfileUsage {
  return { ...usage, totalTokens: usage.inputTokens + usage.outputTokens };
}

/** What a response tells about itself. */
export function diagnosticsOf({ id, runtime, timings, usage }: Response): Diagnostics {
  return {
    responseId: id,
    ...(runtime === undefined ? {} : { runtime }),
    ...(timings.queuedMs === undefined ? {} : { queueDelayMs: timings.queuedMs }),
    ...(timings.firstTokenMs === undefined ? {} : { ttftMs: timings.firstTokenMs }),
    ...(usage === undefined ? {} : { cachedInputTokens: usage.cachedInputTokens }),
  };
}

/** Progress that is not part of the log, in the protocol's own words; the body has LMSP's, with what those can't say. */
export function toProgress(progress: RunProgress): Progress {
  switch (progress.kind) {
    case "queued": {
      const { position, expectedWaitMs } = progress;
      return { stage: StageCode.queued, body: toBody({ kind: "queued", position, expected_wait_ms: expectedWaitMs }) };
    }
    case "loading":
      return { stage: StageCode.waitingDependency, body: toBody({ kind: "loading" }) };
    case "prompt": {
      const { doneTokens, totalTokens } = progress;
      const body = toBody({ kind: "prompt", done_tokens: doneTokens, total_tokens: totalTokens });
      const stage = StageCode.preprocessing;
      return totalTokens > 0
        ? { stage, percent: Math.min(100, (100 * doneTokens) / totalTokens), body }
        : { stage, body };
    }
  }
}

const encoder = new TextEncoder();

function toBody(members: object): Uint8Array {
  return encoder.encode(JSON.stringify({ type: "response.progress", ...members }));
}
