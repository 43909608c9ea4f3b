import type { PartialEvent, TerminalEvent } from "../events/event.ts";
import { EventReader } from "../events/read-event.ts";
import type { SseSource } from "../fetch/sse.ts";
import type { JsonObject } from "../json.ts";

/** Everything that a source makes of an operation's events. */
export function renderSse(source: SseSource, partials: readonly string[], terminal: string): string {
  const reader = new EventReader();
  const read = (text: string) => {
    const result = reader.read(text);
    if (result.kind !== "event") throw new Error(JSON.stringify(result));
    return result.event;
  };
  const sse = partials.map((text) => source.take(read(text) as PartialEvent)).join("");
  return sse + source.end({ event: read(terminal) as TerminalEvent, status: 200, origin: "service" });
}

/** The data of each server-sent event, without the `[DONE]`. */
export function dataOf(sse: string): JsonObject[] {
  const lines = sse.split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)) as JsonObject);
}
