import type { JsonObject } from "../json.ts";

/** What the typed calls need to know of OpenAI's bodies; all other members are passed on as they are. */

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly object[];
  readonly tools?: readonly object[] | undefined;
}

export interface ChatCompletion extends JsonObject {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly ChatChoice[];
  readonly usage?: JsonObject;
}

export interface ChatChoice extends JsonObject {
  readonly index: number;
  readonly message: JsonObject & { readonly content?: string | null };
  readonly finish_reason: string;
}

export interface ResponsesRequest {
  readonly model: string;
  readonly input?: string | readonly object[] | undefined;
  readonly tools?: readonly object[] | undefined;
}

export interface ResponseObject extends JsonObject {
  readonly id: string;
  readonly status: string;
  readonly output: readonly JsonObject[];
}

export interface EmbeddingsRequest {
  readonly model: string;
  readonly input: unknown;
}

export interface EmbeddingsAnswer extends JsonObject {
  readonly data: readonly (JsonObject & {
    readonly index: number;
    /** Base64 when the request asked for it. */
    readonly embedding: readonly number[] | string;
  })[];
}

export interface ModelList extends JsonObject {
  readonly data: readonly (JsonObject & { readonly id: string })[];
}
