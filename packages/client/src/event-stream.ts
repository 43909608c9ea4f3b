import { createParser } from "eventsource-parser";
import { LmspError, parseProblem } from "./problem.ts";

/**
 * Events of one connection, as they arrive. Ends where the connection ends; leaving early closes the connection.
 * @param silenceMs milliseconds without a byte after which the connection counts as lost; 0: never. The service sends
 * a comment every 15 s, so that a dead connection is noticed.
 * @throws whatever the connection breaks with; LmspError `invalid-answer` when an event is not one of LMSP.
 */
export async function* readEvents<Event extends { readonly type: string }>(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<Event> {
  const arrived: Event[] = [];
  const parser = createParser({ onEvent: (message) => arrived.push(parseEvent<Event>(message.data)) });
  // The decoder takes a byte order mark away; the parser would lose a line by it.
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    while (true) {
      const { done, value } = await withinSilence(reader.read(), silenceMs);
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    // A connection that is already broken has nothing to close.
    reader.cancel().catch(() => {});
  }
}

/** The caller names the type: what the service promises is not checked again. */
function parseEvent<Event>(data: string): Event {
  const problem = parseProblem(data);
  // Once a stream runs it has no status any more: what ends it early is sent in it.
  if (problem !== undefined) throw LmspError.fromProblem(problem);
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && "type" in value && typeof value.type === "string") {
      return value as Event;
    }
  } catch {
    // Told below, like JSON that is no event.
  }
  throw new LmspError({
    code: "invalid-answer",
    detail: `The stream holds something that is no LMSP event: ${data.slice(0, 100)}`,
  });
}

async function withinSilence<Value>(read: Promise<Value>, silenceMs: number): Promise<Value> {
  if (silenceMs === 0) return read;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Nothing arrived for ${silenceMs} ms`)), silenceMs);
  });
  try {
    return await Promise.race([read, silence]);
  } finally {
    clearTimeout(timer);
  }
}
