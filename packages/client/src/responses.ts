import type { InputItem, OutputItem } from "./items.ts";
import type { LmspProblem } from "./problem.ts";

/** Body of `POST /lmsp/v1/responses` (LMSP §5). Absent fields take the service's or the model's defaults. */
export interface ResponseRequest {
  /** Catalog id or alias. */
  readonly model: string;
  /** A question, a conversation, or a prompt to be continued. */
  readonly input:
    | string
    | readonly InputItem[]
    | { readonly prompt: string; readonly suffix?: string; readonly raw?: boolean };
  readonly instructions?: string;
  readonly tools?: readonly {
    readonly type?: "function";
    readonly name: string;
    readonly description?: string;
    /** JSON Schema of the arguments. */
    readonly parameters?: unknown;
    readonly strict?: boolean;
  }[];
  readonly tool_choice?: "auto" | "none" | "required" | { readonly name: string };
  readonly parallel_tool_calls?: boolean;
  readonly output?: {
    readonly format?:
      | { readonly type: "text" }
      | { readonly type: "json" }
      | { readonly type: "json_schema"; readonly name?: string; readonly schema: unknown; readonly strict?: boolean };
    /** Upper bound of output tokens. */
    readonly max_tokens?: number;
  };
  readonly sampling?: {
    readonly temperature?: number;
    readonly top_p?: number;
    readonly top_k?: number;
    readonly min_p?: number;
    readonly typical_p?: number;
    readonly seed?: number;
    readonly stop?: string | readonly string[];
    readonly presence_penalty?: number;
    readonly frequency_penalty?: number;
    readonly repeat_penalty?: number;
    readonly repeat_last_n?: number;
    readonly logit_bias?: Readonly<Record<string, number>>;
    /** Likeliest tokens listed for each token, 0 … 20. */
    readonly logprobs?: number;
  };
  readonly reasoning?: { readonly effort?: "none" | "minimal" | "low" | "medium" | "high" };
  /** Answers wanted, 1 … 8. */
  readonly candidates?: number;
  readonly previous_response_id?: string;
  readonly truncation?: "none" | "oldest";
  /** Milliseconds, or a duration such as `30m`; -1: for ever. */
  readonly keep_alive?: number | string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly store?: boolean;
  /** -8 … 8, higher sooner. */
  readonly priority?: number;
  /** RFC 3339. */
  readonly deadline?: string;
  /** Milliseconds from acceptance. */
  readonly timeout_ms?: number;
  readonly supersedes?: string;
  readonly on_disconnect?: "cancel" | "continue";
  readonly background?: boolean;
  readonly runtime_options?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Body of `PATCH /lmsp/v1/responses/{id}`; absent members stay as they are. */
export interface ResponseChange {
  /** -8 … 8, higher sooner. */
  readonly priority?: number;
  /** RFC 3339. */
  readonly deadline?: string;
  /** Milliseconds from now, in place of `deadline`. */
  readonly timeout_ms?: number;
}

export type LmspResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** The unit of work (LMSP §5), whatever interface it came through. */
export interface LmspResponse {
  readonly id: string;
  readonly status: LmspResponseStatus;
  /** Catalog id. */
  readonly model: string;
  /** Interface that it came through: `lmsp`, `openai`, `ollama`, `nnrp`. */
  readonly door: string;
  readonly runtime?: string;
  readonly output: readonly OutputItem[];
  readonly usage?: LmspUsage;
  /** Milliseconds; absent: that phase was not reached. */
  readonly timings?: {
    readonly queued?: number;
    readonly load?: number;
    readonly prompt?: number;
    readonly generation?: number;
    readonly first_token?: number;
    readonly total?: number;
  };
  readonly incomplete_reason?: string;
  /** Why it `failed` or was `cancelled`. */
  readonly problem?: LmspProblem;
  /** True: a task that outlives its connection (LMSP §7). */
  readonly background?: boolean;
  /** 1, and one more for each run after a crash of the service. */
  readonly attempt: number;
  readonly priority?: number;
  readonly deadline?: string;
  /** RFC 3339, as are the others. */
  readonly created_at: string;
  readonly started_at?: string;
  readonly finished_at?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface LmspUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly cached_input_tokens?: number;
  readonly reasoning_tokens?: number;
}

/** Filters of `GET /lmsp/v1/responses`; without the scope `admin`, own ones only. */
export interface ListResponsesOptions {
  readonly door?: string;
  readonly model?: string;
  readonly status?: LmspResponseStatus;
  /** Principal's id. */
  readonly owner?: string;
  /** Things on one page. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** All text that an answer gave, without reasoning, refusals and calls. */
export function outputText(response: LmspResponse, candidate = 0): string {
  return response.output
    .flatMap((item) => (item.type === "message" && item.candidate === candidate ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");
}
