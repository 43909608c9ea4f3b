/** Items of a conversation (LMSP §5), in the vocabulary of OpenAI's Responses. */

export type Role = "system" | "developer" | "user" | "assistant";

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart {
  readonly type: "image";
  /** A `data:` URL with the image's bytes. */
  readonly url: string;
  readonly detail?: "low" | "high" | "auto";
}

export type ContentPart = TextPart | ImagePart;

export interface MessageItem {
  readonly type: "message";
  readonly role: Role;
  readonly content: readonly ContentPart[];
}

export interface FunctionCallItem {
  readonly type: "function_call";
  readonly callId: string;
  readonly name: string;
  /** JSON text of an object, kept as the client sent it so that big integers stay exact. */
  readonly arguments: string;
}

export interface FunctionCallOutputItem {
  readonly type: "function_call_output";
  readonly callId: string;
  readonly output: string;
}

export interface ReasoningItem {
  readonly type: "reasoning";
  readonly text: string;
}

export type InputItem = MessageItem | FunctionCallItem | FunctionCallOutputItem | ReasoningItem;

/** Conversation, or a prompt that is continued. */
export type ResponseInput =
  | { readonly kind: "items"; readonly items: readonly InputItem[] }
  | {
      readonly kind: "completion";
      readonly prompt: string;
      /** Text that has to follow the completion (fill in the middle). */
      readonly suffix?: string;
      /** True: the prompt goes to the model as it is, without its chat template. */
      readonly raw: boolean;
    };
