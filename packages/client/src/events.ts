import type { OutputItem, TokenLogprob } from "./items.ts";
import type { LmspResponse } from "./responses.ts";

/** What numbered events have in common (LMSP §6). */
interface Numbered {
  /** From 1, without gap. */
  readonly sequence: number;
  /** Milliseconds since the response's `created_at`. */
  readonly at_ms: number;
}

interface ItemPlace {
  readonly item_id: string;
  /** Place of the item in `output`. */
  readonly index: number;
}

/** The last event of every response. */
export type TerminalEvent = Numbered & {
  readonly type: "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled";
  readonly response: LmspResponse;
};

export type NumberedEvent =
  | TerminalEvent
  | (Numbered &
      (
        | { readonly type: "response.created"; readonly response: LmspResponse }
        | { readonly type: "response.in_progress"; readonly runtime: string }
        | { readonly type: "response.output_item.added"; readonly item: OutputItem }
        | ({
            readonly type: "response.output_text.delta";
            readonly delta: string;
            readonly logprobs?: readonly TokenLogprob[];
          } & ItemPlace)
        | ({ readonly type: "response.output_text.done"; readonly text: string } & ItemPlace)
        | ({ readonly type: "response.refusal.delta"; readonly delta: string } & ItemPlace)
        | ({ readonly type: "response.refusal.done"; readonly refusal: string } & ItemPlace)
        | ({ readonly type: "response.reasoning_text.delta"; readonly delta: string } & ItemPlace)
        | ({ readonly type: "response.reasoning_text.done"; readonly text: string } & ItemPlace)
        | ({ readonly type: "response.function_call_arguments.delta"; readonly delta: string } & ItemPlace)
        | ({ readonly type: "response.function_call_arguments.done"; readonly arguments: string } & ItemPlace)
        | {
            readonly type: "response.output_item.done";
            readonly item: OutputItem;
            readonly finish_reason?: string;
            readonly raw_finish_reason?: string;
          }
        /** What came before is void. */
        | { readonly type: "response.restarted"; readonly attempt: number }
      ));

/** Not numbered, never sent again. */
export type ResponseProgressEvent = { readonly type: "response.progress" } & (
  | { readonly kind: "queued"; readonly position: number; readonly expected_wait_ms?: number }
  | { readonly kind: "loading" }
  | { readonly kind: "prompt"; readonly done_tokens: number; readonly total_tokens: number }
);

/** An event of a response. A newer service may send types that are not listed here: pass over them. */
export type LmspEvent = NumberedEvent | ResponseProgressEvent;

/** Whether the stream ends with this event. */
export function isTerminalEvent(event: LmspEvent): event is TerminalEvent {
  return (
    event.type === "response.completed" ||
    event.type === "response.incomplete" ||
    event.type === "response.failed" ||
    event.type === "response.cancelled"
  );
}

/**
 * Reads a stream to its end.
 * @returns the response as its last event carries it, whatever its status.
 * @throws LmspError when the stream can't be read to its end.
 */
export async function finalResponse(events: AsyncIterable<LmspEvent>): Promise<LmspResponse | undefined> {
  let last: LmspResponse | undefined;
  for await (const event of events) {
    if (isTerminalEvent(event)) last = event.response;
  }
  return last;
}
