import type { ResponseEvent } from "../events/response-events.ts";
import type { OutputItem } from "../responses/response.ts";

/** What an event's object takes beside its texts, about. */
const eventBytes = 160;

/** Bytes that an event takes in memory, about: enough for a budget, cheap enough for every token. */
export function estimateBytes(event: ResponseEvent): number {
  if ("delta" in event) {
    const logprobs = "logprobs" in event && event.logprobs ? event.logprobs.length * 400 : 0;
    return eventBytes + 2 * event.delta.length + logprobs;
  }
  if ("response" in event) return eventBytes * 4 + sum(event.response.output);
  if ("item" in event) return eventBytes + itemBytes(event.item);
  if ("text" in event) return eventBytes + 2 * event.text.length;
  if ("arguments" in event) return eventBytes + 2 * event.arguments.length;
  return eventBytes;
}

function sum(items: readonly OutputItem[]): number {
  let bytes = 0;
  for (const item of items) bytes += itemBytes(item);
  return bytes;
}

function itemBytes(item: OutputItem): number {
  return eventBytes + 2 * (item.type === "function_call" ? item.arguments.length : item.text.length);
}
