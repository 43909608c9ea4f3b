import type { PartialEvent } from "../events/event.ts";
import type { JsonObject } from "../json.ts";

/**
 * Takes OpenAI's chunks out of events. One chunk may have become several events that all carry it; it is given out once.
 */
export class ChunkFilter {
  #lastText = "";
  #lastKind = "";

  /** @returns undefined when the event has none, or one that was given out already. */
  take(event: PartialEvent): JsonObject | undefined {
    if (!("openai_chunk" in event) || event.openai_chunk === undefined) return undefined;
    const kind = "call_id" in event ? `${event.type} ${event.call_id}` : event.type;
    const text = JSON.stringify(event.openai_chunk);
    // The same text twice in events of one kind is a model that says the same again.
    const isRepeated = text === this.#lastText && kind !== this.#lastKind;
    this.#lastText = text;
    this.#lastKind = kind;
    return isRepeated ? undefined : event.openai_chunk;
  }
}
