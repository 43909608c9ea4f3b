import type { LogEntry } from "@plenum/core";
import type { ResponseHeaders } from "../shared/door.ts";
import type { EventSource, WireEvent } from "../shared/openai/event-source.ts";
import type { StreamRenderer } from "../shared/stream-response.ts";

/** Milliseconds after which a stream's headers leave even without output (LMSP §6). */
export const headersAfterMs = 10_000;

/** Ends a whole chat or text completion; a stream that broke off ends without it. */
const done = "data: [DONE]\n\n";

/** An OpenAI stream as server-sent events. */
export function sseRenderer(
  source: EventSource,
  options: { readonly headers: ResponseHeaders; readonly endsWithDone: boolean },
): StreamRenderer {
  return {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      ...options.headers,
    },
    startsWith: ({ event }) => !beforeOutput.has(event.type),
    render(entry) {
      const text = frame(source.push(entry));
      return options.endsWithDone && isWhole(entry) ? text + done : text;
    },
    get hasEnded() {
      return source.hasEnded ?? false;
    },
    comment: ": still here\n\n",
    expired: (error) => frame(source.fail(error)),
  };
}

/** Events after which a problem can still have a status of its own. */
const beforeOutput: ReadonlySet<string> = new Set([
  "response.created",
  "response.in_progress",
  "response.restarted",
  "response.failed",
  "response.cancelled",
]);

function isWhole({ event }: LogEntry): boolean {
  return event.type === "response.completed" || event.type === "response.incomplete";
}

function frame(events: readonly WireEvent[]): string {
  let text = "";
  for (const { name, json } of events) {
    if (name !== undefined) text += `event: ${name}\n`;
    text += `data: ${json}\n\n`;
  }
  return text;
}
