import type { ProfileError } from "../errors.ts";
import type { JsonObject } from "../json.ts";

/**
 * Events as they stand on the wire (wire description §12.2), in the wire's spelling like OpenAI's own types. Tool-call
 * events always have the contract's flat members, whichever form the peer sent.
 */

interface MayCarryChunk {
  /** OpenAI's own chunk or event. Nobody may need it. */
  readonly openai_chunk?: JsonObject;
}

/** `index` is the choice of a chat, the output item's place of a response. */
export interface TextDelta extends MayCarryChunk {
  readonly type: "response.output_text.delta";
  readonly index: number;
  readonly delta: string;
}

interface OfToolCall extends MayCarryChunk {
  /** Place of the call in the output, from 0. */
  readonly index: number;
  readonly item_id: string;
  /** OpenAI's id of the call. */
  readonly call_id: string;
}

export interface ToolCallStarted extends OfToolCall {
  readonly type: "response.tool_call.started";
  readonly name: string;
}

export interface ToolCallDelta extends OfToolCall {
  readonly type: "response.tool_call.delta";
  readonly arguments_delta: string;
}

export interface ToolCallCompleted extends OfToolCall {
  readonly type: "response.tool_call.completed";
  readonly name: string;
  /** All of them, as JSON text. */
  readonly arguments: string;
}

export interface ToolCallFailed extends OfToolCall {
  readonly type: "response.tool_call.error";
  readonly error: ProfileError;
}

export interface UsageReport extends MayCarryChunk {
  readonly type: "response.usage";
  /** In one or both spellings; see `readUsage`. */
  readonly usage: JsonObject;
}

export interface DiagnosticsReport {
  readonly type: "response.diagnostics";
  /** See `readDiagnostics`. */
  readonly diagnostics: JsonObject;
}

/** An extension, sent only to those who asked for chunks: one that no other event stands for. */
export interface OpenAIChunk {
  readonly type: "response.openai_chunk";
  readonly openai_chunk: JsonObject;
}

export interface Completed extends MayCarryChunk {
  readonly type: "response.completed";
  /** OpenAI's whole answer. */
  readonly body: JsonObject;
}

export interface Failed extends MayCarryChunk {
  readonly type: "response.error";
  readonly error: ProfileError;
  readonly diagnostics?: JsonObject;
}

export interface Cancelled extends MayCarryChunk {
  readonly type: "response.cancelled";
  readonly reason: string;
}

export type ToolCallEvent = ToolCallStarted | ToolCallDelta | ToolCallCompleted | ToolCallFailed;

/** Sent as PARTIAL_RESULT. */
export type PartialEvent = TextDelta | ToolCallEvent | UsageReport | DiagnosticsReport | OpenAIChunk;

/** Sent as RESULT_PUSH. */
export type TerminalEvent = Completed | Failed | Cancelled;

export type ProfileEvent = PartialEvent | TerminalEvent;

export function isTerminalEvent(event: ProfileEvent): event is TerminalEvent {
  return event.type === "response.completed" || event.type === "response.error" || event.type === "response.cancelled";
}
