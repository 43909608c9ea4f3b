import type { TaskReader } from "@plenum/core";
import type { Call } from "../shared/door.ts";
import { commentIntervalMs } from "../shared/stream-response.ts";
import { comment, eventStreamHeaders } from "./stream.ts";
import { renderTaskEvent } from "./task.ts";

/** Streams the events of a task to its end; a client that reads slowly stops only its own place. */
export async function streamTask({ core, responder }: Call, reader: TaskReader): Promise<void> {
  responder.start(200, eventStreamHeaders);
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
    if (isFree && !responder.isClosed) isFree = responder.write(comment);
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
