import type { CoreError, LogEntry, ResponseEvent, RunProgress } from "@plenum/core";
import { compact } from "../shared/compact.ts";
import type { StreamRenderer } from "../shared/stream-response.ts";
import { toProblemBody } from "./errors.ts";
import { toWireItem, toWireLogprob, toWireResponse } from "./response.ts";

/** Of every event stream: no proxy keeps or gathers it. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

/** Keeps proxies from closing an idle stream. */
export const comment = ": still here\n\n";

/** Key of this format in the log's renderings: one render for all readers. */
const format = "lmsp";

/** The native event stream (LMSP §6): the same bytes for every reader, now and on a replay. */
export function createRenderer(headers: Readonly<Record<string, string>>): StreamRenderer {
  return {
    headers: { ...eventStreamHeaders, ...headers },
    startsWith: ({ event }) => !beforeRun.has(event.type),
    render: renderEntry,
    progress: renderProgress,
    comment,
    expired: renderExpired,
  };
}

/** Events after which a problem can still have a status of its own. */
const beforeRun: ReadonlySet<string> = new Set(["response.created", "response.restarted", "response.failed"]);

function renderEntry(entry: LogEntry): string {
  const isKnown = entry.renderedAs === format;
  if (isKnown && entry.rendering !== undefined) return entry.rendering;
  const text = `id: ${entry.sequence}\nevent: ${entry.event.type}\ndata: ${renderData(entry)}\n\n`;
  entry.rendering = isKnown ? text : undefined;
  entry.renderedAs = format;
  return text;
}

/** JSON text of one event. */
export function renderData({ sequence, event }: LogEntry): string {
  const { type, atMs } = event;
  // The common token is put together around its one escaped text.
  if (type === "response.output_text.delta" && event.logprobs === undefined) {
    return `{"type":"${type}","sequence":${sequence},"at_ms":${atMs},"item_id":"${event.itemId}","index":${event.index},"delta":${JSON.stringify(event.delta)}}`;
  }
  return JSON.stringify({ type, sequence, at_ms: atMs, ...membersOf(event) });
}

function membersOf(event: ResponseEvent): Record<string, unknown> {
  switch (event.type) {
    case "response.created":
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "response.cancelled":
      return { response: toWireResponse(event.response) };
    case "response.in_progress":
      return { runtime: event.runtime };
    case "response.restarted":
      return { attempt: event.attempt };
    case "response.output_item.added":
      return { item: toWireItem(event.item) };
    case "response.output_item.done":
      return compact({
        item: toWireItem(event.item),
        finish_reason: event.finishReason,
        raw_finish_reason: event.rawFinishReason,
      });
    case "response.output_text.delta":
      return compact({
        item_id: event.itemId,
        index: event.index,
        delta: event.delta,
        logprobs: event.logprobs?.map(toWireLogprob),
      });
    case "response.refusal.delta":
    case "response.reasoning_text.delta":
    case "response.function_call_arguments.delta":
      return { item_id: event.itemId, index: event.index, delta: event.delta };
    case "response.output_text.done":
    case "response.reasoning_text.done":
      return { item_id: event.itemId, index: event.index, text: event.text };
    case "response.refusal.done":
      return { item_id: event.itemId, index: event.index, refusal: event.refusal };
    case "response.function_call_arguments.done":
      return { item_id: event.itemId, index: event.index, arguments: event.arguments };
  }
}

function renderProgress(progress: RunProgress): string {
  return `event: response.progress\ndata: ${JSON.stringify({ type: "response.progress", ...toWireProgress(progress) })}\n\n`;
}

function toWireProgress(progress: RunProgress): Record<string, unknown> {
  switch (progress.kind) {
    case "queued":
      return compact({
        kind: "queued",
        position: progress.position,
        expected_wait_ms: progress.expectedWaitMs,
      });
    case "loading":
      return { kind: "loading" };
    case "prompt":
      return { kind: "prompt", done_tokens: progress.doneTokens, total_tokens: progress.totalTokens };
  }
}

function renderExpired(error: CoreError): string {
  return `event: error\ndata: ${JSON.stringify(toProblemBody(error))}\n\n`;
}
