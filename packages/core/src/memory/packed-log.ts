import type { ResponseEvent } from "../events/response-events.ts";
import type { LogEntry } from "../ports/event-log.ts";

type TextDelta = Extract<ResponseEvent, { type: "response.output_text.delta" }>;

/** Deltas of one item in a row. */
interface TextRun {
  readonly itemId: string;
  readonly index: number;
  /** All their texts. */
  readonly text: string;
  /** Length of each text, and when it came. */
  readonly lengths: Uint32Array;
  readonly atMs: Float64Array;
}

/**
 * The entries of a log that has ended. A long answer is thousands of small objects, which the collector would walk as
 * long as the log is kept; packed it is a handful. Entries are made again when somebody reads them.
 */
export class PackedLog {
  readonly #first: number;
  readonly #parts: readonly (ResponseEvent | TextRun)[];

  /** @param entries without a gap, at least one */
  constructor(entries: readonly LogEntry[]) {
    this.#first = entries[0]?.sequence ?? 1;
    this.#parts = pack(entries);
  }

  entries(): LogEntry[] {
    const entries: LogEntry[] = [];
    for (const part of this.#parts) {
      if ("lengths" in part) unpackRun(part, this.#first, entries);
      else entries.push({ sequence: this.#first + entries.length, event: part });
    }
    return entries;
  }
}

function pack(entries: readonly LogEntry[]): (ResponseEvent | TextRun)[] {
  const parts: (ResponseEvent | TextRun)[] = [];
  let run: TextDelta[] = [];
  const endRun = (): void => {
    const [first] = run;
    if (first === undefined) return;
    const texts: string[] = [];
    const lengths = new Uint32Array(run.length);
    const atMs = new Float64Array(run.length);
    for (const event of run) {
      lengths[texts.length] = event.delta.length;
      atMs[texts.length] = event.atMs;
      texts.push(event.delta);
    }
    // Joined anew, so that pieces of the reads that brought them are let go.
    parts.push({ itemId: first.itemId, index: first.index, text: texts.join(""), lengths, atMs });
    run = [];
  };
  for (const { event } of entries) {
    if (event.type !== "response.output_text.delta" || event.logprobs !== undefined) {
      endRun();
      parts.push(event);
      continue;
    }
    if (run[0] !== undefined && run[0].index !== event.index) endRun();
    run.push(event);
  }
  endRun();
  return parts;
}

function unpackRun({ itemId, index, text, lengths, atMs }: TextRun, first: number, entries: LogEntry[]): void {
  let from = 0;
  for (const [place, length] of lengths.entries()) {
    const delta = text.slice(from, from + length);
    from += length;
    const event = { type: "response.output_text.delta", atMs: atMs[place] ?? 0, itemId, index, delta } as const;
    entries.push({ sequence: first + entries.length, event });
  }
}
