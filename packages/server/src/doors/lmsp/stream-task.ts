import type { TaskReader } from "@plenum/core";
import type { Call } from "../shared/door.ts";
import { renderTaskEvent } from "./task.ts";

/** Milliseconds between comments on an idle event stream (LMSP §6). */
const commentIntervalMs = 15_000;

/** Streams the events of a task to its end; a client that reads slowly stops only its own place. */
export async function streamTask({ core, responder }: Call, reader: TaskReader): Promise<void> {
  responder.start(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  });
  let isFree = true;
  let drain = (): void => {};
  responder.onDrain(() => {
    isFree = true;
    drain();
  });
  const forget = responder.onClosed(() => {
    reader.close();
    drain();
  });
  const again = (): void => {
    if (isFree && !responder.isClosed) isFree = responder.write(": still here\n\n");
    stop = core.clock.after(commentIntervalMs, again);
  };
  let stop = core.clock.after(commentIntervalMs, again);
  try {
    for (let events = await reader.next(); events !== undefined; events = await reader.next()) {
      if (responder.isClosed) return;
      isFree = responder.write(events.map(renderTaskEvent).join(""));
      if (isFree) continue;
      await new Promise<void>((resolve) => {
        drain = resolve;
      });
    }
    responder.end();
  } finally {
    stop();
    forget();
    reader.close();
  }
}
