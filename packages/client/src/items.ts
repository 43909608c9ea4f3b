/** Items of a conversation and of an answer (LMSP §5), in the vocabulary of OpenAI's Responses. */

export interface InputMessage {
  readonly type?: "message";
  readonly role: "system" | "developer" | "user" | "assistant";
  readonly content:
    | string
    | readonly (
        | { readonly type: "input_text" | "output_text"; readonly text: string }
        | {
            readonly type: "input_image";
            /** A `data:` URL. */
            readonly image_url: string;
            readonly detail?: "low" | "high" | "auto";
          }
      )[];
}

export interface InputFunctionCall {
  readonly type: "function_call";
  readonly call_id: string;
  readonly name: string;
  /** JSON text of an object. */
  readonly arguments: string;
}

export interface FunctionCallOutput {
  readonly type: "function_call_output";
  readonly call_id: string;
  readonly output: string;
}

export interface InputReasoning {
  readonly type: "reasoning";
  readonly text: string;
}

export type InputItem = InputMessage | InputFunctionCall | FunctionCallOutput | InputReasoning;

/** One token of the answer and the likeliest ones in its place. */
export interface TokenLogprob {
  readonly token: string;
  /** Natural logarithm. */
  readonly logprob: number;
  /** UTF-8 bytes of the token. */
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly {
    readonly token: string;
    readonly logprob: number;
    readonly bytes: readonly number[];
  }[];
}

interface OutputItemBase {
  readonly id: string;
  /** Which of the answers it belongs to, from 0. */
  readonly candidate: number;
  /** Place in `output`. */
  readonly index: number;
  readonly status: "in_progress" | "completed" | "incomplete";
}

export interface OutputMessage extends OutputItemBase {
  readonly type: "message";
  readonly role: "assistant";
  readonly content: readonly (
    | { readonly type: "output_text"; readonly text: string; readonly logprobs?: readonly TokenLogprob[] }
    | { readonly type: "refusal"; readonly refusal: string }
  )[];
}

export interface OutputFunctionCall extends OutputItemBase {
  readonly type: "function_call";
  readonly call_id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface OutputReasoning extends OutputItemBase {
  readonly type: "reasoning";
  readonly text: string;
}

export type OutputItem = OutputMessage | OutputFunctionCall | OutputReasoning;
