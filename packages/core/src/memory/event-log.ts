import type { RunProgress } from "../events/backend-events.ts";
import { isTerminalEvent, type ResponseEvent } from "../events/response-events.ts";
import type { EventLog, EventLogLimits, LogEntry, LogExtent, LogReader } from "../ports/event-log.ts";
import { CoreError } from "../problems/core-error.ts";
import { estimateBytes } from "./estimate-bytes.ts";
import { PackedLog } from "./packed-log.ts";

/** Event logs in memory, bounded for each response and in total. */
export class MemoryEventLog implements EventLog {
  readonly #logs = new Map<string, ResponseLog>();
  /** Finished logs, oldest first: the first to go when the budget is short. */
  readonly #finished = new Set<string>();
  readonly #limits: EventLogLimits;
  #bytes = 0;

  constructor(limits: EventLogLimits) {
    this.#limits = limits;
  }

  open(id: string, epoch: number): void {
    const log = this.#logs.get(id);
    if (log === undefined) this.#logs.set(id, new ResponseLog(epoch));
    else log.epoch = Math.max(log.epoch, epoch);
  }

  append(id: string, epoch: number, expectedSequence: number, events: readonly ResponseEvent[]): number {
    const log = this.#get(id);
    if (epoch !== log.epoch || expectedSequence !== log.last) {
      throw new CoreError("conflict", `The log of ${id} is at ${log.last} of epoch ${log.epoch}.`);
    }
    const before = log.bytes;
    for (const event of events) log.push(event);
    log.trim(this.#limits.bytesPerResponse);
    this.#bytes += log.bytes - before;
    if (log.ended) this.#finished.add(id);
    if (this.#bytes > this.#limits.bytesTotal) this.#dropFinished(id);
    log.notify();
    log.packWhenUnread();
    return log.last;
  }

  async committed(): Promise<void> {}

  announce(id: string, progress: RunProgress): void {
    this.#logs.get(id)?.announce(progress);
  }

  read(id: string, options: { readonly after: number }): LogReader {
    const reader = new MemoryLogReader(this.#get(id), options.after);
    reader.refuseExpired();
    return reader;
  }

  extent(id: string): LogExtent | undefined {
    const log = this.#logs.get(id);
    if (log === undefined) return undefined;
    return { first: log.first, last: log.last, ended: log.ended, bytes: log.bytes, readers: log.readers.size };
  }

  /** Entries after a sequence, without a reader: none of an unknown log, fewer when the head is gone. */
  slice(id: string, after: number, limit: number): readonly LogEntry[] {
    const log = this.#logs.get(id);
    if (log === undefined) return [];
    const entries = log.slice(Math.max(after, log.first - 1), limit);
    log.packWhenUnread();
    return entries;
  }

  /** Brings back a log that was kept elsewhere; the next `open` gives it its epoch. @param first number of the first event */
  restore(id: string, first: number, events: readonly ResponseEvent[]): void {
    const log = new ResponseLog(0);
    log.last = first - 1;
    for (const event of events) log.push(event);
    this.#logs.set(id, log);
    this.#bytes += log.bytes;
    if (log.ended) this.#finished.add(id);
    if (this.#bytes > this.#limits.bytesTotal) this.#dropFinished(id);
    log.packWhenUnread();
  }

  async recall(id: string): Promise<boolean> {
    return this.#logs.has(id);
  }

  drop(id: string): void {
    const log = this.#logs.get(id);
    if (log === undefined) return;
    this.#logs.delete(id);
    this.#finished.delete(id);
    this.#bytes -= log.bytes;
    log.isDropped = true;
    log.notify();
  }

  get bytes(): number {
    return this.#bytes;
  }

  get hasRoom(): boolean {
    return this.#bytes < this.#limits.bytesTotal || this.#finished.size > 0;
  }

  #get(id: string): ResponseLog {
    const log = this.#logs.get(id);
    if (log === undefined) throw new CoreError("not-found", `There are no events of ${id}.`);
    return log;
  }

  #dropFinished(except: string): void {
    for (const id of this.#finished) {
      if (this.#bytes <= this.#limits.bytesTotal) return;
      if (id === except) continue;
      const log = this.#logs.get(id);
      this.drop(id);
      // Readers would keep its memory beyond the budget.
      log?.clear();
    }
  }
}

/** Entries of an ended log that are kept as they are. */
const mostUnpacked = 16;

class ResponseLog {
  epoch: number;
  bytes = 0;
  last = 0;
  ended = false;
  isDropped = false;
  readonly readers = new Set<MemoryLogReader>();
  /** The latest one, for a reader that comes later; what has been appended since has overtaken it. */
  progress: RunProgress | undefined;
  #entries: LogEntry[] = [];
  #sizes: number[] = [];
  /** Of a log that has ended and that nobody reads, instead of its entries. */
  #packed: PackedLog | undefined;
  #count = 0;

  constructor(epoch: number) {
    this.epoch = epoch;
  }

  get first(): number {
    return this.last - this.#count + 1;
  }

  push(event: ResponseEvent): void {
    this.last += 1;
    const size = estimateBytes(event);
    this.#entries.push({ sequence: this.last, event });
    this.#sizes.push(size);
    this.#count += 1;
    this.bytes += size;
    this.progress = undefined;
    if (isTerminalEvent(event)) this.ended = true;
  }

  /** Drops a quarter of the head at a time, so that a long answer does not pay for it at every token. */
  trim(limitBytes: number): void {
    if (this.bytes <= limitBytes) return;
    let count = 0;
    let freed = 0;
    while (count < this.#entries.length - 1 && this.bytes - freed > limitBytes * 0.75) {
      freed += this.#sizes[count] ?? 0;
      count += 1;
    }
    this.#entries.splice(0, count);
    this.#sizes.splice(0, count);
    this.#count -= count;
    this.bytes -= freed;
  }

  /** Drops everything; readers that are not at the end get `events-expired`. */
  clear(): void {
    this.#entries = [];
    this.#sizes = [];
    this.#packed = undefined;
    this.#count = 0;
    this.notify();
  }

  /** An ended log grows no more; it is unpacked again for whoever comes. A short one has little to gain. */
  packWhenUnread(): void {
    if (!this.ended || this.readers.size > 0 || this.#entries.length <= mostUnpacked) return;
    this.#packed ??= new PackedLog(this.#entries);
    this.#entries = [];
    this.#sizes = [];
  }

  slice(after: number, limit: number): LogEntry[] {
    if (this.#entries.length === 0 && this.#packed !== undefined) this.#entries = this.#packed.entries();
    const start = after - this.first + 1;
    return this.#entries.slice(start, start + limit);
  }

  announce(progress: RunProgress): void {
    this.progress = progress;
    for (const reader of this.readers) reader.announce(progress);
  }

  notify(): void {
    for (const reader of this.readers) reader.notify();
  }
}

class MemoryLogReader implements LogReader {
  readonly #log: ResponseLog;
  #place: number;
  #progress: RunProgress | undefined;
  #listener: (() => void) | undefined;

  constructor(log: ResponseLog, after: number) {
    this.#log = log;
    this.#place = after;
    this.#progress = log.progress;
    log.readers.add(this);
  }

  take(limit = Number.POSITIVE_INFINITY): readonly LogEntry[] {
    if (this.#place >= this.#log.last) return [];
    this.refuseExpired();
    const entries = this.#log.slice(this.#place, limit);
    this.#place += entries.length;
    return entries;
  }

  takeProgress(): RunProgress | undefined {
    const progress = this.#progress;
    this.#progress = undefined;
    return progress;
  }

  get ended(): boolean {
    return (this.#log.ended || this.#log.isDropped) && this.#place >= this.#log.last;
  }

  onReadable(listener: () => void): void {
    this.#listener = listener;
  }

  close(): void {
    this.#listener = undefined;
    this.#log.readers.delete(this);
    this.#log.packWhenUnread();
  }

  announce(progress: RunProgress): void {
    this.#progress = progress;
    this.#listener?.();
  }

  notify(): void {
    this.#listener?.();
  }

  /** @throws CoreError events-expired when the reader's place is no longer kept. */
  refuseExpired(): void {
    const { first } = this.#log;
    if (this.#place + 1 >= first) return;
    this.close();
    throw new CoreError("events-expired", `Events before ${first} are no longer kept; read the response itself.`, {
      firstSequence: first,
    });
  }
}
