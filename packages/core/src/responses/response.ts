import type { FinishReason, TokenLogprob, Usage } from "../events/backend-events.ts";
import type { Problem } from "../problems/core-error.ts";

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

const terminalStatuses: ReadonlySet<ResponseStatus> = new Set(["completed", "incomplete", "failed", "cancelled"]);

export type ItemStatus = "in_progress" | "completed" | "incomplete";

interface ItemBase {
  /** `<kind>_<x>_<n>` with the response's own x. */
  readonly id: string;
  readonly candidate: number;
  /** Place in `output`. */
  readonly index: number;
  readonly status: ItemStatus;
}

export interface OutputMessage extends ItemBase {
  readonly type: "message";
  readonly text: string;
  readonly refusal: string;
  readonly logprobs: readonly TokenLogprob[];
}

export interface OutputReasoning extends ItemBase {
  readonly type: "reasoning";
  readonly text: string;
}

export interface OutputFunctionCall extends ItemBase {
  readonly type: "function_call";
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export type OutputItem = OutputMessage | OutputReasoning | OutputFunctionCall;

/** Milliseconds; absent: that phase was not reached. */
export interface Timings {
  readonly queuedMs?: number;
  readonly loadMs?: number;
  readonly promptMs?: number;
  readonly generationMs?: number;
  /** From creation to the first output (ttft). */
  readonly firstTokenMs?: number;
  readonly totalMs?: number;
}

/** How each candidate ended. */
export interface CandidateFinish {
  readonly candidate: number;
  readonly finishReason: FinishReason;
  readonly rawFinishReason?: string;
}

export type DoorKind = "lmsp" | "openai" | "ollama" | "nnrp";

/** The unit of work (LMSP §5), whatever door it came through. Immutable: each event that changes it makes a new one. */
export interface Response {
  readonly id: string;
  readonly status: ResponseStatus;
  /** It is its own task (LMSP §7). Absent: it is none. */
  readonly background?: true;
  /** Catalog id, also when the client used an alias. */
  readonly model: string;
  readonly door: DoorKind;
  readonly runtime?: string;
  /** The earlier response that this one continues. */
  readonly previousResponseId?: string;
  readonly output: readonly OutputItem[];
  readonly finishes: readonly CandidateFinish[];
  readonly usage?: Usage;
  readonly timings: Timings;
  readonly incompleteReason?: "max_tokens" | "content_filter";
  readonly problem?: Problem;
  /** 1, and one more for each run after a crash. */
  readonly attempt: number;
  readonly priority: number;
  readonly deadlineMs?: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export function isTerminal(response: Response): boolean {
  return terminalStatuses.has(response.status);
}
