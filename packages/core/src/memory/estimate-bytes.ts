import type { ResponseEvent } from "../events/response-events.ts";
import type { InputItem } from "../request/items.ts";
import type { ResponseRequest } from "../request/request.ts";
import type { OutputItem } from "../responses/response.ts";

/** What an event's object and its native rendering take beside its texts, about. */
const eventBytes = 420;
/** What the log probability of one token takes, with its alternatives, about. */
const logprobBytes = 400;

/** Bytes that an event takes in memory, about: enough for a budget, cheap enough for every token. */
export function estimateBytes(event: ResponseEvent): number {
  if ("delta" in event) {
    const logprobs = "logprobs" in event && event.logprobs ? event.logprobs.length * logprobBytes : 0;
    return eventBytes + 4 * event.delta.length + logprobs;
  }
  if ("response" in event) return eventBytes * 4 + sum(event.response.output);
  if ("item" in event) return eventBytes + itemBytes(event.item);
  if ("text" in event) return eventBytes + 4 * event.text.length;
  if ("arguments" in event) return eventBytes + 4 * event.arguments.length;
  return eventBytes;
}

/** Bytes that a request takes in memory, about: its texts and tools. */
export function estimateRequestBytes(request: ResponseRequest): number {
  const { input, instructions = "", tools, output } = request;
  let length = instructions.length;
  if (input.kind === "completion") length += input.prompt.length + (input.suffix?.length ?? 0);
  else for (const item of input.items) length += itemLength(item);
  if (tools.length > 0) length += JSON.stringify(tools).length;
  if (output.format.type === "json_schema") length += JSON.stringify(output.format.schema).length;
  return eventBytes + 2 * length;
}

function itemLength(item: InputItem): number {
  switch (item.type) {
    case "message":
      return item.content.reduce((sum, part) => sum + (part.type === "text" ? part.text : part.url).length, 50);
    case "function_call":
      return item.arguments.length;
    case "function_call_output":
      return item.output.length;
    case "reasoning":
      return item.text.length;
  }
}

/** Bytes of a response's output, about. */
export function estimateOutputBytes(items: readonly OutputItem[]): number {
  return sum(items);
}

function sum(items: readonly OutputItem[]): number {
  let bytes = 0;
  for (const item of items) bytes += itemBytes(item);
  return bytes;
}

function itemBytes(item: OutputItem): number {
  switch (item.type) {
    case "message":
      return eventBytes + 4 * (item.text.length + item.refusal.length) + item.logprobs.length * logprobBytes;
    case "reasoning":
      return eventBytes + 4 * item.text.length;
    case "function_call":
      return eventBytes + 4 * item.arguments.length;
  }
}
