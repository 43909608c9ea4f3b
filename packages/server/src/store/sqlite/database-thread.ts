import type { Worker } from "node:worker_threads";
import { CoreError } from "@plenum/core";
import { startThread } from "./start-thread.ts";
import { StorageRefusal } from "./storage-refusal.ts";
import type {
  Argument,
  Batch,
  Fault,
  OperationName,
  Outcome,
  Result,
  ThreadMessage,
  ThreadOptions,
} from "./thread/protocol.ts";

/** Most milliseconds that something waits to be written. */
const windowMs = 25;
/** Milliseconds between two tries to write while the disk takes nothing. */
const retryMs = 1000;
/** Characters that one batch takes from the sources, so that no turn of the loop is long. */
const batchCharacters = 2_000_000;

/** One operation on its way. */
export interface Pending {
  readonly name: OperationName;
  readonly argument: unknown;
  /** Characters of its texts, about. */
  readonly size: number;
  readonly isSynced: boolean;
  readonly done: (value: unknown) => void;
  readonly failed: (error: CoreError) => void;
}

/** Something that has changes to write and gives their latest state when it is asked. */
export interface Source {
  /** Adds operations until the room is used. @returns characters that they took. */
  collect(into: Pending[], room: number): number;
  readonly isDirty: boolean;
}

/**
 * The main thread's end of the thread that owns the database. What is to be written is gathered for at most 25 ms and
 * goes over in one message, which is one transaction; the next one waits for its answer.
 */
export class DatabaseThread {
  readonly #worker: Worker;
  readonly #file: string;
  readonly #sources: Source[] = [];
  readonly #onEvicted: (ids: readonly string[]) => void;
  readonly #onFault: (fault: string | undefined) => void;
  #queue: Pending[] = [];
  #inFlight: readonly Pending[] | undefined;
  #window: ReturnType<typeof setTimeout> | undefined;
  #soon: ReturnType<typeof setImmediate> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #fault: string | undefined;
  /** The thread is gone: nothing can be read or written any more. */
  #end: CoreError | undefined;
  #onIdle: (() => void)[] = [];

  private constructor(
    worker: Worker,
    file: string,
    on: { evicted: (ids: readonly string[]) => void; fault: (fault: string | undefined) => void },
  ) {
    this.#worker = worker;
    this.#file = file;
    this.#onEvicted = on.evicted;
    this.#onFault = on.fault;
    worker.on("message", (message: ThreadMessage) => {
      if (message.type === "done") this.#settle(message.outcomes, message.evicted);
    });
    worker.on("error", (error) => this.#fail(`its thread ended: ${error instanceof Error ? error.message : error}`));
    worker.on("exit", () => this.#fail("it is closed"));
    worker.unref();
  }

  /** @throws StorageRefusal when the database can't be used. */
  static async start(
    options: ThreadOptions,
    on: { evicted: (ids: readonly string[]) => void; fault: (fault: string | undefined) => void },
  ): Promise<DatabaseThread> {
    const worker = startThread("main", options);
    const first = await new Promise<ThreadMessage>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    if (first.type === "refused") {
      await worker.terminate();
      throw new StorageRefusal(options.file, first.fault);
    }
    return new DatabaseThread(worker, options.file, on);
  }

  addSource(source: Source): void {
    this.#sources.push(source);
  }

  /** Undefined while the disk takes what it is given. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /**
   * Runs one operation after everything that came before it.
   * @param options.isSynced true: it is on the disk itself when this resolves. @default false
   * @throws CoreError insufficient-storage, internal.
   */
  call<Name extends OperationName>(
    name: Name,
    argument: Argument<Name>,
    { isSynced = false }: { readonly isSynced?: boolean } = {},
  ): Promise<Result<Name>> {
    return new Promise((resolve, reject) => {
      const done = (value: unknown): void => resolve(value as Result<Name>);
      this.#queue.push({ name, argument, size: 0, isSynced, done, failed: reject });
      this.wakeNow();
    });
  }

  /** A source has changes: they are written within the window. */
  wake(): void {
    if (this.#inFlight !== undefined || this.#window !== undefined || this.#soon !== undefined) return;
    this.#window = setTimeout(() => this.#flush(), windowMs);
  }

  /** There is something that somebody waits for. */
  wakeNow(): void {
    if (this.#inFlight !== undefined || this.#soon !== undefined) return;
    this.#soon = setImmediate(() => this.#flush());
  }

  /** Writes what waits as far as the disk takes it, then ends the thread. */
  async close(): Promise<void> {
    if (this.#end !== undefined) return;
    clearTimeout(this.#retry);
    do {
      this.wakeNow();
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    } while (this.#end === undefined && this.#fault === undefined && this.#hasWork);
    clearTimeout(this.#retry);
    if (this.#end !== undefined) return;
    const ended = new Promise((resolve) => this.#worker.once("exit", resolve));
    this.#worker.ref();
    this.#worker.postMessage("close");
    await ended;
  }

  get #hasWork(): boolean {
    return this.#queue.length > 0 || this.#sources.some(({ isDirty }) => isDirty);
  }

  #flush(isRetry = false): void {
    this.#clearTimers();
    if (this.#inFlight !== undefined) return;
    if (this.#end !== undefined) {
      this.#refuseAll(this.#end);
      return;
    }
    const pending: Pending[] = [];
    // What waits in the sources came before what was called.
    if (this.#fault === undefined || isRetry || this.#onIdle.length > 0) {
      let room = batchCharacters;
      for (const source of this.#sources) if (room > 0) room -= source.collect(pending, room);
    }
    pending.push(...this.#queue);
    this.#queue = [];
    if (isRetry && pending.length === 0) pending.push(probe);
    if (pending.length === 0) {
      this.#tellIdle();
      return;
    }
    this.#inFlight = pending;
    const batch: Batch = {
      operations: pending.map(({ name, argument }) => ({ name, argument })),
      isSynced: pending.some(({ isSynced }) => isSynced),
    };
    // Who waits for an answer keeps the process; an idle thread does not.
    this.#worker.ref();
    this.#worker.postMessage(batch);
  }

  #settle(outcomes: readonly Outcome[], evicted: readonly string[]): void {
    const settled = this.#inFlight ?? [];
    this.#inFlight = undefined;
    this.#worker.unref();
    const faults = outcomes.flatMap((outcome) => ("fault" in outcome ? [outcome.fault] : []));
    this.#note(faults);
    if (evicted.length > 0) this.#onEvicted(evicted);
    for (const [index, { done, failed }] of settled.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) continue;
      if ("fault" in outcome) failed(this.#errorOf(outcome.fault));
      else done(outcome.value);
    }
    if (this.#queue.length > 0) this.wakeNow();
    else if (this.#fault === undefined && this.#hasWork) this.wake();
    this.#tellIdle();
  }

  /** A batch that was written ends the fault; one that was not begins it. */
  #note(faults: readonly Fault[]): void {
    const lasting = faults.find(({ kind }) => kind === "full" || kind === "corrupt");
    const sentence = lasting && new StorageRefusal(this.#file, lasting).message;
    if (sentence !== undefined) {
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#flush(true), retryMs).unref();
    }
    if (sentence === this.#fault) return;
    this.#fault = sentence;
    this.#onFault(sentence);
  }

  #errorOf(fault: Fault): CoreError {
    const detail = new StorageRefusal(this.#file, fault).message;
    const code = fault.kind === "full" ? "insufficient-storage" : "internal";
    return new CoreError(code, detail, {}, { cause: new Error(fault.message) });
  }

  #fail(reason: string): void {
    if (this.#end !== undefined) return;
    const sentence = `The database ${this.#file} can't be used: ${reason}.`;
    this.#end = new CoreError("insufficient-storage", sentence);
    this.#fault = sentence;
    if (reason !== "it is closed") this.#onFault(sentence);
    const lost = this.#inFlight ?? [];
    this.#inFlight = undefined;
    for (const { failed } of lost) failed(this.#end);
    this.#refuseAll(this.#end);
  }

  #refuseAll(error: CoreError): void {
    const refused = this.#queue;
    this.#queue = [];
    for (const { failed } of refused) failed(error);
    this.#tellIdle();
  }

  #tellIdle(): void {
    const waiting = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of waiting) resolve();
  }

  #clearTimers(): void {
    clearTimeout(this.#window);
    clearImmediate(this.#soon);
    this.#window = undefined;
    this.#soon = undefined;
  }
}

const probe: Pending = {
  name: "upkeep.probe",
  argument: undefined,
  size: 0,
  isSynced: false,
  done: () => {},
  failed: () => {},
};
