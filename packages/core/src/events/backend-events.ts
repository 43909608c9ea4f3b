/**
 * What a backend pushes. Small and flat: items, ids, numbers and the Response are made from it by the run
 * (`responses/assemble.ts`), in one place for every backend.
 */

export interface TokenLogprob {
  readonly token: string;
  /** Natural logarithm, from the untempered distribution. */
  readonly logprob: number;
  /** UTF-8 bytes of the token. */
  readonly bytes: readonly number[];
  readonly top: readonly { readonly token: string; readonly logprob: number; readonly bytes: readonly number[] }[];
}

/** Why a candidate ended, in the core's words. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly reasoningTokens: number;
}

export type BackendEvent =
  /** The runtime has taken the request: prompt counted, or upstream 2xx. Exactly once, before everything else but progress. */
  | {
      readonly type: "accepted";
      readonly inputTokens?: number;
      readonly loadMs?: number;
      /** The output comes in one piece: when it begins says nothing about the time to the first token. */
      readonly isWhole?: true;
    }
  /** Not logged, merged. */
  | { readonly type: "progress"; readonly progress: RunProgress }
  | {
      readonly type: "text";
      readonly candidate: number;
      readonly delta: string;
      readonly logprobs?: readonly TokenLogprob[];
    }
  | { readonly type: "refusal"; readonly candidate: number; readonly delta: string }
  | { readonly type: "reasoning"; readonly candidate: number; readonly delta: string }
  /** Begins call number `call` (from 0 in each candidate). Absent `callId`: the run makes one. */
  | {
      readonly type: "function_call";
      readonly candidate: number;
      readonly call: number;
      readonly name: string;
      readonly callId?: string;
    }
  | {
      readonly type: "function_call_arguments";
      readonly candidate: number;
      readonly call: number;
      readonly delta: string;
    }
  /** Ends a candidate. Exactly once for each. */
  | {
      readonly type: "finish";
      readonly candidate: number;
      readonly finishReason: FinishReason;
      /** The runtime's own word. */
      readonly rawFinishReason?: string;
    }
  | {
      readonly type: "usage";
      readonly usage: Usage;
      /** For runtimes that tell it only at the end. */
      readonly loadMs?: number;
      readonly promptMs?: number;
      readonly generationMs?: number;
    };

export type RunProgress =
  | { readonly kind: "queued"; readonly position: number; readonly expectedWaitMs?: number }
  | { readonly kind: "loading" }
  | { readonly kind: "prompt"; readonly doneTokens: number; readonly totalTokens: number };
