import type { RunProgress } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";

export interface LogEntry {
  /** From 1, without a gap. */
  readonly sequence: number;
  readonly event: ResponseEvent;
  /** Format in which the entry was rendered last. */
  renderedAs?: string;
  /** The text that was made in it, from the second reader on: most entries have one, for whom keeping it is waste. */
  rendering?: string | undefined;
}

/** One reader at its own place. A reader that is not read costs nothing beyond the log. */
export interface LogReader {
  /**
   * Entries after the reader's place, at most `limit`; moves the place.
   * @throws CoreError events-expired (`firstSequence`) when the place lies before the kept part.
   */
  take(limit?: number): readonly LogEntry[];
  /** Latest progress not taken yet; it is not part of the log. */
  takeProgress(): RunProgress | undefined;
  /** True once the terminal event was taken or the log was dropped: nothing will follow. */
  readonly ended: boolean;
  /** Called after each append, announcement and drop; replaces an earlier listener. */
  onReadable(listener: () => void): void;
  close(): void;
}

export interface LogExtent {
  /** First and last sequence kept; `first` is `last + 1` when none is. */
  readonly first: number;
  readonly last: number;
  readonly ended: boolean;
  readonly bytes: number;
  readonly readers: number;
}

export interface EventLogLimits {
  /** Bytes kept for each response; past it the head goes, the terminal event stays. */
  readonly bytesPerResponse: number;
  /** Bytes kept in total; past it the oldest finished logs go. */
  readonly bytesTotal: number;
}

/** Numbered events of each response (LMSP §6). Every implementation runs `testEventLog`. */
export interface EventLog {
  /** @param options.isDurable true: what is appended also goes to disk, in batches. @default false */
  open(id: string, epoch: number, options?: { readonly isDurable?: boolean }): void;
  /**
   * Synchronous on this replica's log; durable or remote logs follow in batches.
   * @returns the last sequence.
   * @throws CoreError conflict when the epoch is old or `expectedSequence` is not the last one.
   */
  append(id: string, epoch: number, expectedSequence: number, events: readonly ResponseEvent[]): number;
  /** Resolves when everything up to `sequence` is as safe as this log makes it. */
  committed(id: string, sequence: number): Promise<void>;
  /** Gives progress to the readers, and to those that come before the next append; each keeps only the latest. */
  announce(id: string, progress: RunProgress): void;
  /**
   * @param options.after sequence after which reading starts; 0: from the beginning.
   * @param options.visibility `live`: entries at once; `committed`: only committed ones.
   * @throws CoreError not-found, events-expired.
   */
  read(id: string, options: { readonly after: number; readonly visibility: "live" | "committed" }): LogReader;
  extent(id: string): LogExtent | undefined;
  /**
   * Brings a log that is only on disk into memory, so that `extent`, `read` and `append` know it.
   * @returns false when there is none.
   */
  recall(id: string): Promise<boolean>;
  /** Readers end; reading it again is not-found. */
  drop(id: string): void;
  /** Bytes kept now. */
  readonly bytes: number;
  /** False: running logs alone fill the budget, so nothing new should start. */
  readonly hasRoom: boolean;
}
