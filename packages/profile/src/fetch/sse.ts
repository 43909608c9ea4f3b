import type { CallEnd } from "../client/call-end.ts";
import type { ProfileError } from "../errors.ts";
import type { PartialEvent } from "../events/event.ts";
import type { JsonObject } from "../json.ts";

/** Makes one API's server-sent events of a call's events. */
export interface SseSource {
  /** Text for one event; empty where the API has nothing for it. */
  take(event: PartialEvent): string;
  /** Text that ends the stream. */
  end(end: CallEnd): string;
}

/** What a stream is told of its request. */
export interface SseRequest {
  readonly requestId: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  readonly includeUsage: boolean;
}

export function data(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

export function namedEvent(event: JsonObject & { readonly type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The error of an end that is none of completed. */
export function errorOfEnd({ event }: CallEnd): ProfileError {
  if (event.type === "response.error") return event.error;
  const code = event.type === "response.cancelled" ? event.reason : "internal_error";
  return { type: "cancelled_error", code, message: "The request was cancelled." };
}
