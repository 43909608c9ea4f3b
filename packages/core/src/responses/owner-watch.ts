import type { Clock } from "../ports/clock.ts";
import type { EventLog, LogReader } from "../ports/event-log.ts";
import type { DisconnectPolicy } from "../request/request.ts";
import type { Run } from "./run.ts";

interface OwnerWatchOptions {
  readonly id: string;
  readonly run: Run;
  readonly policy: DisconnectPolicy;
  readonly clock: Clock;
  readonly log: EventLog;
  /** Milliseconds that a lost owner's response waits for a reader. */
  readonly windowMs: number;
}

/**
 * Decides what becomes of a response whose connection was lost (LMSP §5). With `cancel` it ends at once, whoever else
 * watches. With `continue` it goes on, and is abandoned when nobody reads it for the resume window.
 */
export class OwnerWatch {
  readonly #options: OwnerWatchOptions;
  #hasLeft = false;
  #stopWaiting: () => void = () => {};

  constructor(options: OwnerWatchOptions) {
    this.#options = options;
  }

  /** The owner's connection was lost. */
  left(): void {
    if (this.#options.policy === "cancel") {
      this.#options.run.cancel("disconnected");
      return;
    }
    this.#hasLeft = true;
    this.#waitForReader();
  }

  /** A later reader; when it goes, the wait begins again. */
  watched(reader: LogReader): LogReader {
    this.#stopWaiting();
    const close = reader.close.bind(reader);
    reader.close = () => {
      close();
      if (this.#hasLeft) this.#waitForReader();
    };
    return reader;
  }

  close(): void {
    this.#stopWaiting();
  }

  #waitForReader(): void {
    const { run, log, id, clock, windowMs } = this.#options;
    this.#stopWaiting();
    if (run.hasEnded || (log.extent(id)?.readers ?? 0) > 0) return;
    this.#stopWaiting = clock.after(windowMs, () => run.cancel("abandoned"));
  }
}
