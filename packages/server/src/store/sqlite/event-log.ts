import {
  type Clock,
  CoreError,
  type EventLog,
  type EventLogLimits,
  type LogEntry,
  type LogExtent,
  type LogReader,
  MemoryEventLog,
  type ResponseEvent,
  type RunProgress,
} from "@plenum/core";
import type { DatabaseThread, Pending, Source } from "./database-thread.ts";
import { packEntries, unpackEntries } from "./event-chunk.ts";

/** Entries of one log that go over at a time. */
const chunkEntries = 2000;

/**
 * The event logs of memory; those that were opened as durable are written behind, too. Memory is what everybody reads;
 * the disk is for the next process, and for logs that memory had no room for.
 */
export class SqliteEventLog implements EventLog, Source {
  readonly #memory: MemoryEventLog;
  readonly #thread: DatabaseThread;
  readonly #keepsContent: boolean;
  readonly #clock: Clock;
  /** Durable logs that memory holds. */
  readonly #durable = new Map<string, DurableLog>();
  readonly #dirty = new Set<DurableLog>();
  readonly #recalls = new Map<string, Promise<boolean>>();

  constructor(limits: EventLogLimits, thread: DatabaseThread, keepsContent: boolean, clock: Clock) {
    this.#clock = clock;
    this.#memory = new MemoryEventLog(limits);
    this.#thread = thread;
    this.#keepsContent = keepsContent;
    thread.addSource(this);
  }

  open(id: string, epoch: number, options: { readonly isDurable?: boolean } = {}): void {
    this.#memory.open(id, epoch);
    if (options.isDurable && this.#keepsContent && !this.#durable.has(id)) this.#durable.set(id, new DurableLog(id, 0));
  }

  append(id: string, epoch: number, expectedSequence: number, events: readonly ResponseEvent[]): number {
    const last = this.#memory.append(id, epoch, expectedSequence, events);
    if (this.#durable.size > 0) {
      const log = this.#durable.get(id);
      if (log !== undefined) {
        this.#dirty.add(log);
        this.#thread.wake();
      }
    }
    return last;
  }

  committed(id: string, sequence: number): Promise<void> {
    const log = this.#durable.get(id);
    if (log === undefined || log.committed >= sequence) return Promise.resolve();
    const waiting = log.wait(sequence);
    if (this.#thread.fault !== undefined) {
      log.reject(new CoreError("insufficient-storage", this.#thread.fault));
      return waiting;
    }
    this.#thread.wakeNow();
    return waiting;
  }

  announce(id: string, progress: RunProgress): void {
    this.#memory.announce(id, progress);
  }

  read(id: string, options: { readonly after: number; readonly visibility: "live" | "committed" }): LogReader {
    const reader = this.#memory.read(id, options);
    const log = options.visibility === "committed" ? this.#durable.get(id) : undefined;
    return log === undefined ? reader : new CommittedReader(reader, log, options.after);
  }

  extent(id: string): LogExtent | undefined {
    return this.#memory.extent(id);
  }

  recall(id: string): Promise<boolean> {
    if (this.#memory.extent(id) !== undefined) return Promise.resolve(true);
    const running = this.#recalls.get(id);
    if (running !== undefined) return running;
    const recalled = this.#recall(id).finally(() => this.#recalls.delete(id));
    this.#recalls.set(id, recalled);
    return recalled;
  }

  drop(id: string): void {
    this.#memory.drop(id);
    const log = this.#durable.get(id);
    if (log === undefined) return;
    this.#durable.delete(id);
    this.#dirty.delete(log);
    // Readers that are left end with what memory gave them.
    log.commit(Number.POSITIVE_INFINITY);
    void this.#thread.call("logs.delete", id).catch(() => {});
  }

  get bytes(): number {
    return this.#memory.bytes;
  }

  get hasRoom(): boolean {
    return this.#memory.hasRoom;
  }

  /** What the database has let go. */
  forget(id: string): void {
    this.#memory.drop(id);
    this.#durable.get(id)?.commit(Number.POSITIVE_INFINITY);
    this.#durable.delete(id);
  }

  /** Forgets which logs were durable of those that memory has let go. */
  prune(): void {
    for (const [id, log] of this.#durable) {
      if (this.#memory.extent(id) === undefined && !this.#dirty.has(log)) this.#durable.delete(id);
    }
  }

  get isDirty(): boolean {
    return this.#dirty.size > 0;
  }

  collect(into: Pending[], room: number): number {
    let taken = 0;
    for (const log of this.#dirty) {
      if (taken >= room) break;
      const operation = this.#chunkOf(log);
      if (operation === undefined) continue;
      taken += operation.size;
      into.push(operation);
    }
    return taken;
  }

  #chunkOf(log: DurableLog): Pending | undefined {
    const extent = this.#memory.extent(log.id);
    const entries = this.#memory.slice(log.id, log.sent, chunkEntries);
    const first = entries[0]?.sequence;
    const last = entries.at(-1)?.sequence;
    if (extent === undefined || first === undefined || last === undefined) {
      this.#dirty.delete(log);
      // Memory had no room for what was never written: what is on disk is not the whole.
      if (extent === undefined) this.drop(log.id);
      return undefined;
    }
    if (last === extent.last) this.#dirty.delete(log);
    log.sent = last;
    const endedAt = extent.ended && last === extent.last ? this.#clock.now() : null;
    const text = packEntries(entries);
    return {
      name: "logs.append",
      argument: { id: log.id, first, last, entries: text, endedAt, keptFrom: extent.first },
      size: text.length,
      isSynced: log.isAwaited,
      done: () => log.commit(last),
      failed: (error) => {
        log.sent = log.committed;
        log.reject(error);
        if (this.#durable.get(log.id) === log) this.#dirty.add(log);
      },
    };
  }

  async #recall(id: string): Promise<boolean> {
    const chunks = await this.#thread.call("logs.read", id);
    if (this.#memory.extent(id) !== undefined) return true;
    const first = chunks?.[0]?.first;
    if (chunks === undefined || first === undefined) return false;
    const events = chunks.flatMap(({ entries }) => unpackEntries(entries));
    this.#memory.restore(id, first, events);
    this.#durable.set(id, new DurableLog(id, first + events.length - 1));
    return true;
  }
}

/** How far a log is on disk. */
class DurableLog {
  readonly id: string;
  /** Last entry that was handed to the thread, and last one that it wrote. */
  sent: number;
  committed: number;
  readonly readers = new Set<() => void>();
  #waiting: { readonly sequence: number; readonly resolve: () => void; readonly reject: (error: CoreError) => void }[] =
    [];

  constructor(id: string, committed: number) {
    this.id = id;
    this.sent = committed;
    this.committed = committed;
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0 || this.readers.size > 0;
  }

  wait(sequence: number): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ sequence, resolve, reject }));
  }

  commit(sequence: number): void {
    this.committed = Math.max(this.committed, sequence);
    const resolved = this.#waiting.filter((each) => each.sequence <= this.committed);
    this.#waiting = this.#waiting.filter((each) => each.sequence > this.committed);
    for (const { resolve } of resolved) resolve();
    for (const notify of this.readers) notify();
  }

  reject(error: CoreError): void {
    const refused = this.#waiting;
    this.#waiting = [];
    for (const { reject } of refused) reject(error);
  }
}

/** Gives only what no crash can take back (LMSP §6). */
class CommittedReader implements LogReader {
  readonly #reader: LogReader;
  readonly #log: DurableLog;
  #place: number;
  #listener: (() => void) | undefined;
  readonly #notify = (): void => this.#listener?.();

  constructor(reader: LogReader, log: DurableLog, after: number) {
    this.#reader = reader;
    this.#log = log;
    this.#place = after;
    log.readers.add(this.#notify);
  }

  take(limit = Number.POSITIVE_INFINITY): readonly LogEntry[] {
    const ready = Math.min(limit, this.#log.committed - this.#place);
    if (ready <= 0) return [];
    const entries = this.#reader.take(ready);
    this.#place += entries.length;
    return entries;
  }

  takeProgress(): RunProgress | undefined {
    return this.#reader.takeProgress();
  }

  get ended(): boolean {
    return this.#reader.ended;
  }

  onReadable(listener: () => void): void {
    this.#listener = listener;
    this.#reader.onReadable(listener);
  }

  close(): void {
    this.#listener = undefined;
    this.#log.readers.delete(this.#notify);
    this.#reader.close();
  }
}
