import type { LogEntry, ResponseEvent } from "@plenum/core";

type TextDelta = Extract<ResponseEvent, { type: "response.output_text.delta" }>;

/** Deltas of one item in a row: item id, index, then time and text of each. */
type TextRun = (string | number)[];

/** Entries as JSON text. Text deltas in a row share what is the same in all of them: most of a log is theirs. */
export function packEntries(entries: readonly LogEntry[]): string {
  const parts: (ResponseEvent | TextRun)[] = [];
  let run: TextRun | undefined;
  for (const { event } of entries) {
    if (event.type !== "response.output_text.delta" || event.logprobs !== undefined) {
      parts.push(event);
      run = undefined;
      continue;
    }
    if (run === undefined || run[1] !== event.index || run[0] !== event.itemId) {
      run = [event.itemId, event.index];
      parts.push(run);
    }
    run.push(event.atMs, event.delta);
  }
  return JSON.stringify(parts);
}

/** What `packEntries` took, in the same order. */
export function unpackEntries(text: string): ResponseEvent[] {
  const parts: (ResponseEvent | TextRun)[] = JSON.parse(text);
  const events: ResponseEvent[] = [];
  for (const part of parts) {
    if (Array.isArray(part)) unpackRun(part, events);
    else events.push(part);
  }
  return events;
}

function unpackRun(run: TextRun, events: ResponseEvent[]): void {
  const itemId = String(run[0]);
  const index = Number(run[1]);
  for (let place = 2; place < run.length; place += 2) {
    const delta: TextDelta & ResponseEvent = {
      type: "response.output_text.delta",
      atMs: Number(run[place]),
      itemId,
      index,
      delta: String(run[place + 1]),
    };
    events.push(delta);
  }
}
