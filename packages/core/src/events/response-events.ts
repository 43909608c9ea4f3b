import type { OutputItem, Response } from "../responses/response.ts";
import type { FinishReason, RunProgress, TokenLogprob } from "./backend-events.ts";

interface ItemPlace {
  readonly itemId: string;
  /** Place of the item in `output`. */
  readonly index: number;
}

/** Numbered and logged (LMSP §6). `atMs` counts from the response's `createdAt`. */
export type ResponseEvent = { readonly atMs: number } & (
  | { readonly type: "response.created"; readonly response: Response }
  | { readonly type: "response.in_progress"; readonly runtime: string }
  /** The run begins again after a crash: what came before is void. */
  | { readonly type: "response.restarted"; readonly attempt: number }
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
  /** `finishReason` stands in the last item of a candidate. */
  | {
      readonly type: "response.output_item.done";
      readonly item: OutputItem;
      readonly finishReason?: FinishReason;
      readonly rawFinishReason?: string;
    }
  | { readonly type: "response.completed"; readonly response: Response }
  | { readonly type: "response.incomplete"; readonly response: Response }
  | { readonly type: "response.failed"; readonly response: Response }
  | { readonly type: "response.cancelled"; readonly response: Response }
);

export type ResponseEventType = ResponseEvent["type"];

export type TerminalEvent = Extract<ResponseEvent, { response: Response }> & {
  type: "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled";
};

export function isTerminalEvent(event: ResponseEvent): event is TerminalEvent {
  return (
    event.type === "response.completed" ||
    event.type === "response.incomplete" ||
    event.type === "response.failed" ||
    event.type === "response.cancelled"
  );
}

/** Not numbered, not logged, merged when a reader is slow. */
export interface ProgressEvent {
  readonly type: "response.progress";
  readonly progress: RunProgress;
}
