import type { ProfileError } from "../errors.ts";
import type { JsonObject } from "../json.ts";

/**
 * Events as JSON text. `chunk` is OpenAI's own chunk as JSON text, which becomes `openai_chunk`.
 */

/** Put together around the text: this is the one line that every token costs. */
export function writeTextDelta(index: number, delta: string, chunk?: string): string {
  const event = `{"type":"response.output_text.delta","index":${index},"delta":${JSON.stringify(delta)}`;
  return chunk === undefined ? `${event}}` : `${event},"openai_chunk":${chunk}}`;
}

/** Which call an event is about. */
export interface ToolCallPlace {
  /** Place of the call in the output, from 0. */
  readonly index: number;
  readonly itemId: string;
  readonly callId: string;
}

/** With `tool_call` beside the contract's members, for readers of the profile's first text. */
export function writeToolCallStarted(place: ToolCallPlace, name: string, chunk?: string): string {
  const { index, callId: id } = place;
  const call = { index, id, type: "function", function: { name, arguments: "" } };
  const members = `,"name":${JSON.stringify(name)},"tool_call":${JSON.stringify(call)}`;
  return closed(`${ofToolCall("started", place)}${members}`, chunk);
}

export function writeToolCallDelta(place: ToolCallPlace, delta: string, chunk?: string): string {
  const escaped = JSON.stringify(delta);
  const call = `{"index":${place.index},"id":${JSON.stringify(place.callId)},"function":{"arguments":${escaped}}}`;
  return closed(`${ofToolCall("delta", place)},"arguments_delta":${escaped},"tool_call":${call}`, chunk);
}

export function writeToolCallCompleted(place: ToolCallPlace, name: string, args: string, chunk?: string): string {
  const members = `,"name":${JSON.stringify(name)},"arguments":${JSON.stringify(args)}`;
  return closed(`${ofToolCall("completed", place)}${members}`, chunk);
}

export function writeToolCallFailed(place: ToolCallPlace, error: ProfileError, chunk?: string): string {
  return closed(`${ofToolCall("error", place)},"error":${JSON.stringify(error)}`, chunk);
}

export function writeUsage(usage: JsonObject, chunk?: string): string {
  return closed(`{"type":"response.usage","usage":${JSON.stringify(usage)}`, chunk);
}

export function writeDiagnosticsEvent(diagnostics: JsonObject): string {
  return `{"type":"response.diagnostics","diagnostics":${JSON.stringify(diagnostics)}}`;
}

export function writeOpenAIChunk(chunk: string): string {
  return `{"type":"response.openai_chunk","openai_chunk":${chunk}}`;
}

/** @param body OpenAI's whole answer as JSON text. */
export function writeCompleted(body: string, requestId?: string): string {
  return `{"type":"response.completed","body":${body}${ofRequest(requestId)}}`;
}

export interface WriteFailedOptions {
  readonly requestId?: string | undefined;
  readonly diagnostics?: JsonObject | undefined;
  readonly chunk?: string | undefined;
}

export function writeFailed(error: ProfileError, { requestId, diagnostics, chunk }: WriteFailedOptions = {}): string {
  const more = diagnostics === undefined ? "" : `,"diagnostics":${JSON.stringify(diagnostics)}`;
  return closed(`{"type":"response.error","error":${JSON.stringify(error)}${more}${ofRequest(requestId)}`, chunk);
}

export function writeCancelled(reason: string, requestId?: string): string {
  return `{"type":"response.cancelled","reason":${JSON.stringify(reason)}${ofRequest(requestId)}}`;
}

function ofToolCall(kind: string, { index, itemId, callId }: ToolCallPlace): string {
  const ids = `"item_id":${JSON.stringify(itemId)},"call_id":${JSON.stringify(callId)}`;
  return `{"type":"response.tool_call.${kind}","index":${index},${ids}`;
}

/** A terminal event names its request, so that logs of both sides can be joined. */
function ofRequest(requestId: string | undefined): string {
  return requestId === undefined ? "" : `,"request_id":${JSON.stringify(requestId)}`;
}

function closed(open: string, chunk: string | undefined): string {
  return chunk === undefined ? `${open}}` : `${open},"openai_chunk":${chunk}}`;
}
