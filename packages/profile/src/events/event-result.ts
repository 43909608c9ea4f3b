import { isJsonObject, type JsonObject } from "../json.ts";
import type { ProfileEvent, ToolCallStarted } from "./event.ts";

export type EventResult =
  /** `before` is the start of a call that the peer left out, to be taken first. */
  | { readonly kind: "event"; readonly event: ProfileEvent; readonly before?: ToolCallStarted }
  /** An event of a type that is not known here; readers ignore it. */
  | { readonly kind: "unknown"; readonly type: string }
  /** `field` is the wrong member, where it is one; the message never quotes the event. */
  | { readonly kind: "invalid"; readonly message: string; readonly field?: string };

/** The members that were checked make it the event of its type; a chunk that is none is as good as absent. */
export function whole(value: JsonObject, before?: ToolCallStarted): EventResult {
  let checked = value;
  if (value["openai_chunk"] !== undefined && !isJsonObject(value["openai_chunk"])) {
    const { openai_chunk: _, ...rest } = value;
    checked = rest;
  }
  const event = checked as unknown as ProfileEvent;
  return before === undefined ? { kind: "event", event } : { kind: "event", event, before };
}

export function wrong(type: string, field: string): EventResult {
  return { kind: "invalid", message: `${type} has no valid ${field}.`, field };
}
