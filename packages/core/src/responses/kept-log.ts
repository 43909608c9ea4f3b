import { isTerminalEvent, type TerminalEvent } from "../events/response-events.ts";
import type { EventLog, LogEntry } from "../ports/event-log.ts";

/** What is left of a response's log after the process that wrote it. */
export interface KeptLog {
  /** From the first event on; empty when the log's head is gone, so that nothing can be folded from them. */
  readonly entries: readonly LogEntry[];
  /** Last sequence; 0: no event was kept. */
  readonly last: number;
  readonly terminal?: TerminalEvent;
  /** False: its last event says that it waits. */
  readonly hasRun: boolean;
}

const none: KeptLog = { entries: [], last: 0, hasRun: false };

/** Brings the log of a response into memory and reads it. */
export async function readKeptLog(log: EventLog, id: string): Promise<KeptLog> {
  if (log.extent(id) === undefined && !(await log.recall(id))) return none;
  const extent = log.extent(id);
  if (extent === undefined || extent.last < extent.first) return { ...none, last: extent?.last ?? 0 };
  const reader = log.read(id, { after: extent.first - 1, visibility: "live" });
  const entries = reader.take();
  reader.close();
  const event = entries.at(-1)?.event;
  const hasRun = event !== undefined && event.type !== "response.created" && event.type !== "response.restarted";
  return {
    entries: extent.first === 1 ? entries : [],
    last: extent.last,
    hasRun,
    ...(event !== undefined && isTerminalEvent(event) ? { terminal: event } : {}),
  };
}
