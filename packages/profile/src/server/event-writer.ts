import { type Diagnostics, writeDiagnostics } from "../diagnostics.ts";
import type { RequestPolicy } from "../envelope.ts";
import { type ProfileError, profileError, statusOfError } from "../errors.ts";
import {
  type ToolCallPlace,
  writeCancelled,
  writeCompleted,
  writeDiagnosticsEvent,
  writeFailed,
  writeOpenAIChunk,
  writeTextDelta,
  writeToolCallCompleted,
  writeToolCallDelta,
  writeToolCallFailed,
  writeToolCallStarted,
  writeUsage,
} from "../events/write-event.ts";
import { toBothSpellings, type Usage } from "../usage.ts";

export interface EventWriterOptions {
  /** Of the accepted request. */
  readonly policy: RequestPolicy;
  /** The client's id, or one derived with `deriveRequestId`. Terminal events name it. */
  readonly requestId: string;
}

/** The end of an operation. */
export interface TerminalResult {
  /** To be sent before it as PARTIAL_RESULT: ends of tool calls that were still open. */
  readonly partials: readonly string[];
  /** For RESULT_PUSH: 200, or what an HTTP answer would have. */
  readonly status: number;
  /** The terminal event, for the typed payload of RESULT_PUSH. */
  readonly event: string;
}

interface OpenCall {
  readonly place: ToolCallPlace;
  readonly name: string;
  arguments: string;
}

/** `nnrp-<operation>-<frame>`: the id of a request that came without one. */
export function deriveRequestId(operationId: bigint, frameId: number): string {
  return `nnrp-${operationId}-${frameId}`;
}

/**
 * Makes the events of one operation, each as JSON text for one PARTIAL_RESULT, in the legal order. It keeps only the
 * tool calls that are open. `chunk` is OpenAI's own chunk as JSON text; it is left out unless the request asked for it.
 *
 * Chats: `index` of a text is its choice, and a call's item id is `toolCallItemId(choice, call)`.
 * Responses: both are the place in `output`, ids are those of the items. The same events are sent as for a chat; the
 * final body is the Response object. Native events that nothing else stands for go through `openAIChunk`; the last one
 * (`response.completed`, `response.incomplete`) need not, since the body holds all of it.
 */
export class EventWriter {
  /** Whether chunks are wanted. When not, there is no need to make them. */
  readonly wantsChunks: boolean;
  readonly wantsDiagnostics: boolean;
  readonly #requestId: string;
  readonly #calls = new Map<string, OpenCall>();

  constructor({ policy, requestId }: EventWriterOptions) {
    this.wantsChunks = policy.openaiChunk ?? false;
    this.wantsDiagnostics = policy.diagnostics ?? false;
    this.#requestId = requestId;
  }

  textDelta(index: number, delta: string, chunk?: string): string {
    return writeTextDelta(index, delta, this.wantsChunks ? chunk : undefined);
  }

  /** @throws RangeError when a call of this id is open. */
  toolCallStarted(place: ToolCallPlace, name: string, chunk?: string): string {
    if (this.#calls.has(place.callId)) throw new RangeError(`tool call ${place.callId} is open already`);
    this.#calls.set(place.callId, { place, name, arguments: "" });
    return writeToolCallStarted(place, name, this.#wanted(chunk));
  }

  /** @throws RangeError when no such call is open; so do the other two. */
  toolCallDelta(callId: string, delta: string, chunk?: string): string {
    const call = this.#open(callId);
    call.arguments += delta;
    return writeToolCallDelta(call.place, delta, this.#wanted(chunk));
  }

  toolCallCompleted(callId: string, chunk?: string): string {
    const { place, name, arguments: args } = this.#open(callId);
    this.#calls.delete(callId);
    return writeToolCallCompleted(place, name, args, this.#wanted(chunk));
  }

  toolCallFailed(callId: string, error: ProfileError, chunk?: string): string {
    const { place } = this.#open(callId);
    this.#calls.delete(callId);
    return writeToolCallFailed(place, error, this.#wanted(chunk));
  }

  /** @returns undefined when the request didn't ask for chunks. */
  openAIChunk(chunk: string): string | undefined {
    return this.wantsChunks ? writeOpenAIChunk(chunk) : undefined;
  }

  /** After the output. */
  usage(usage: Usage, chunk?: string): string {
    return writeUsage(toBothSpellings(usage), this.#wanted(chunk));
  }

  /** @returns undefined when the request didn't ask for diagnostics. */
  diagnostics(diagnostics: Diagnostics): string | undefined {
    if (!this.wantsDiagnostics) return undefined;
    return writeDiagnosticsEvent(writeDiagnostics({ requestId: this.#requestId, ...diagnostics }));
  }

  /** Calls that are open are completed. @param body OpenAI's whole answer, or its JSON text. */
  completed(body: object | string): TerminalResult {
    const partials = [...this.#calls.keys()].map((callId) => this.toolCallCompleted(callId));
    const json = typeof body === "string" ? body : JSON.stringify(body);
    return { partials, status: 200, event: writeCompleted(json, this.#requestId) };
  }

  /** Calls that are open end with `tool_call_stream_interrupted`. @param status when it is known better than by code. */
  failed(
    error: ProfileError,
    details: { readonly status?: number; readonly diagnostics?: Diagnostics; readonly chunk?: string } = {},
  ): TerminalResult {
    const { status, diagnostics } = details;
    return {
      partials: this.#interrupt(),
      status: status ?? statusOfError(error),
      event: writeFailed(error, {
        requestId: this.#requestId,
        diagnostics: diagnostics && writeDiagnostics(diagnostics),
        chunk: this.#wanted(details.chunk),
      }),
    };
  }

  /** For an end that the client did not ask for; its own CANCEL is answered by RESULT_DROP_REASON alone (§8.4). */
  cancelled(reason: string): TerminalResult {
    return { partials: this.#interrupt(), status: 499, event: writeCancelled(reason, this.#requestId) };
  }

  #interrupt(): readonly string[] {
    const error = profileError("tool_call_stream_interrupted", "The answer ended inside this call.");
    return [...this.#calls.keys()].map((callId) => this.toolCallFailed(callId, error));
  }

  #open(callId: string): OpenCall {
    const call = this.#calls.get(callId);
    if (call === undefined) throw new RangeError(`tool call ${callId} is not open`);
    return call;
  }

  #wanted(chunk: string | undefined): string | undefined {
    return this.wantsChunks ? chunk : undefined;
  }
}

/** The answer to a request that could not be read or taken. */
export function refusalResult(error: ProfileError, requestId: string, diagnostics?: Diagnostics): TerminalResult {
  const event = writeFailed(error, { requestId, diagnostics: diagnostics && writeDiagnostics(diagnostics) });
  return { partials: [], status: statusOfError(error), event };
}
