import { CoreError, type LogEntry, type LogReader, toCoreError } from "@plenum/core";
import type { Call } from "./call.ts";
import { type Ending, type ProfileRenderer, toProgress } from "./stream.ts";

export interface LogPumpOptions {
  readonly call: Call;
  readonly reader: LogReader;
  readonly renderer: ProfileRenderer;
  /** Events that the client has already. */
  readonly skip?: number;
  readonly onEnd: (ending: Ending) => void;
  /** The events are no longer kept, or a renderer threw. */
  readonly onFault: (error: unknown) => void;
}

/** Most entries taken at once. */
const entriesPerTake = 256;

/**
 * Sends a log as PARTIAL_RESULTs, as long as the client takes them; a slow one stops only its own place in the log. What
 * one tick brings goes out in one write, which the connection sees to.
 */
export class LogPump {
  readonly #options: LogPumpOptions;
  /** Taken and not yet rendered. */
  #entries: readonly LogEntry[] = [];
  #entryAt = 0;
  /** Rendered and not yet sent. */
  readonly #partials: string[] = [];
  #partialAt = 0;
  #ending: Ending | undefined;
  /** Events of the response so far. */
  #count = 0;
  #isScheduled = false;
  #isClosed = false;

  constructor(options: LogPumpOptions) {
    this.#options = options;
  }

  begin(): void {
    if (this.#isClosed) return;
    const { call, reader } = this.#options;
    call.onDrain(this.#flush);
    reader.onReadable(this.#schedule);
    this.#flush();
  }

  /** Reads no more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.reader.close();
  }

  /** Not within the append that it is told of, whose run it could end. */
  readonly #schedule = (): void => {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    queueMicrotask(this.#flush);
  };

  /** Nobody above could catch: a fault ends this operation and no other. */
  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#isClosed) return;
    try {
      this.#send();
    } catch (error) {
      this.close();
      this.#options.onFault(toCoreError(error));
    }
  };

  #send(): void {
    const { call, reader } = this.#options;
    let isWritable = call.submitted.writable;
    for (;;) {
      while (this.#partialAt < this.#partials.length) {
        if (!isWritable) {
          call.noteSlowReader();
          return;
        }
        const partial = this.#partials[this.#partialAt] ?? "";
        this.#partialAt += 1;
        isWritable = this.#sendOne(partial);
        if (this.#isClosed) return;
      }
      this.#partials.length = 0;
      this.#partialAt = 0;
      if (this.#ending !== undefined) {
        const ending = this.#ending;
        this.close();
        this.#options.onEnd(ending);
        return;
      }
      if (this.#entryAt >= this.#entries.length) {
        this.#entries = reader.take(entriesPerTake);
        this.#entryAt = 0;
        if (this.#entries.length === 0) {
          if (!reader.ended) break;
          throw new CoreError("events-expired", "The events are no longer kept; read the response itself.");
        }
      }
      const entry = this.#entries[this.#entryAt];
      this.#entryAt += 1;
      if (entry !== undefined) this.#ending = this.#options.renderer.push(entry, this.#partials);
    }
    const progress = reader.takeProgress();
    if (progress !== undefined && isWritable) call.submitted.progress(toProgress(progress));
  }

  #sendOne(partial: string): boolean {
    const { call, skip = 0 } = this.#options;
    this.#count += 1;
    if (this.#count <= skip) return call.submitted.writable;
    if (skip === 0) return call.submitted.partial(partial);
    return call.submitted.partial(partial, { deltaSequence: BigInt(this.#count) });
  }
}
