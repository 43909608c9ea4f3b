import { type Clock, CoreError, type LogEntry, type LogReader, type RunProgress, toCoreError } from "@plenum/core";
import type { Responder, ResponseHeaders } from "./door.ts";

/** How a door turns the log into its stream. A pure function of the log, apart from `progress` and `comment`. */
export interface StreamRenderer {
  readonly headers: ResponseHeaders;
  /** True when the headers may leave with this entry: earlier problems have a status of their own. */
  startsWith(entry: LogEntry): boolean;
  /** Text for one entry; empty when the door shows nothing of it. */
  render(entry: LogEntry): string;
  /** True once nothing more may be shown, though the log goes on. Absent: false. */
  readonly hasEnded?: boolean;
  /** Text for progress that is not part of the log. Absent: not shown. */
  progress?(progress: RunProgress): string;
  /** Text that keeps proxies from closing an idle stream. Absent: none. */
  readonly comment?: string;
  /** Text that ends a stream whose events are no longer kept. */
  expired(error: CoreError): string;
}

export interface StreamOptions {
  readonly reader: LogReader;
  readonly renderer: StreamRenderer;
  readonly responder: Responder;
  readonly clock: Clock;
  /** Milliseconds after which the headers leave even without output; 0: at once. */
  readonly headersAfterMs: number;
  /** Turns a problem that came before the headers left into an answer with a status of its own. */
  readonly refuse: (error: CoreError) => void;
  /** The client went away before the end. */
  readonly onLost?: () => void;
}

/** Milliseconds between comments on an idle event stream (LMSP §6). */
export const commentIntervalMs = 15_000;
/** Most entries rendered for one write. */
const entriesPerWrite = 512;

/**
 * Pumps a log to a client; resolves when the stream has ended or the client has gone.
 * @throws what a renderer throws; the stream is over then.
 */
export function streamResponse(options: StreamOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    new StreamPump(options, resolve, reject).begin();
  });
}

/** One write for each tick, as long as the client takes it; a slow client stops only its own place in the log. */
class StreamPump {
  readonly #options: StreamOptions;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  /** Ends what this stream waits for: timers, the connection. */
  readonly #waits: (() => void)[] = [];
  /** Ends the wait for headers without output. */
  #stopHeaders: () => void = () => {};
  #held: LogEntry[] = [];
  /** Progress that no entry has overtaken, held back for the headers as well. */
  #heldProgress: RunProgress | undefined;
  #isScheduled = false;
  #isBlocked = false;
  #hasEnded = false;

  constructor(options: StreamOptions, resolve: () => void, reject: (error: unknown) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    const { reader, responder, clock, headersAfterMs } = this.#options;
    if (responder.isClosed) {
      this.#onClosed();
      return;
    }
    this.#waits.push(responder.onClosed(this.#onClosed));
    reader.onReadable(this.#schedule);
    responder.onDrain(() => {
      this.#isBlocked = false;
      this.#schedule();
    });
    this.#guard(() => {
      if (headersAfterMs === 0) this.#start();
      else this.#stopHeaders = clock.after(headersAfterMs, () => this.#guard(() => this.#start()));
      this.#comment();
      this.#flush();
    });
  }

  /** Timers and listeners have nobody above them who could catch: a fault ends this stream and no other. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (!this.#hasEnded) this.#finish();
      this.#options.onLost?.();
      this.#reject(error);
    }
  }

  /** Gathers everything that one tick brings into one write. */
  readonly #schedule = (): void => {
    if (this.#isScheduled || this.#isBlocked || this.#hasEnded) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#guard(() => this.#flush());
    });
  };

  readonly #onClosed = (): void => {
    if (this.#hasEnded) return;
    this.#finish();
    this.#options.onLost?.();
    this.#resolve();
  };

  #flush(): void {
    while (!this.#hasEnded && !this.#isBlocked) {
      let entries: readonly LogEntry[];
      try {
        entries = this.#options.reader.take(entriesPerWrite);
      } catch (error) {
        this.#expire(toCoreError(error));
        return;
      }
      const progress = this.#options.reader.takeProgress();
      if (entries.length === 0 && progress === undefined) break;
      this.#deliver(entries, progress);
    }
    const { reader, renderer } = this.#options;
    if (!this.#hasEnded && !this.#isBlocked && (reader.ended || renderer.hasEnded)) this.#end();
  }

  #deliver(entries: readonly LogEntry[], progress: RunProgress | undefined): void {
    const { renderer, responder } = this.#options;
    if (!responder.hasStarted) {
      this.#held.push(...entries);
      this.#heldProgress = progress ?? (entries.length === 0 ? this.#heldProgress : undefined);
      const refusal = this.#refusal(entries);
      if (refusal !== undefined) {
        this.#finish();
        this.#options.refuse(refusal);
        this.#resolve();
        return;
      }
      if (entries.some((entry) => renderer.startsWith(entry))) this.#start();
      return;
    }
    let text = progress === undefined ? "" : (renderer.progress?.(progress) ?? "");
    for (const entry of entries) text += renderer.render(entry);
    this.#write(text);
  }

  /** The problem of a response that failed before its headers left. */
  #refusal(entries: readonly LogEntry[]): CoreError | undefined {
    const last = entries.at(-1)?.event;
    if (last === undefined || (last.type !== "response.failed" && last.type !== "response.cancelled")) return undefined;
    if (this.#held.some((entry) => this.#options.renderer.startsWith(entry) && entry.event !== last)) return undefined;
    const { problem } = last.response;
    if (problem === undefined) return undefined;
    // The line of the response's end says why, in words that quote nobody.
    return new CoreError(problem.code, problem.detail, problem.details, { logDetail: "The response failed." });
  }

  /** Sends the headers and what was held back for them. */
  #start(): void {
    const { responder, renderer } = this.#options;
    if (this.#hasEnded || responder.hasStarted) return;
    this.#stopHeaders();
    responder.start(200, renderer.headers);
    let text = "";
    for (const entry of this.#held) text += renderer.render(entry);
    this.#held = [];
    if (this.#heldProgress !== undefined) text += renderer.progress?.(this.#heldProgress) ?? "";
    this.#write(text);
  }

  #write(text: string): void {
    if (text !== "" && !this.#options.responder.write(text)) this.#isBlocked = true;
  }

  #expire(error: CoreError): void {
    const { responder, renderer, refuse } = this.#options;
    this.#finish();
    if (responder.hasStarted) responder.end(renderer.expired(error));
    else refuse(error);
    this.#resolve();
  }

  #end(): void {
    this.#start();
    this.#finish();
    this.#options.responder.end();
    this.#resolve();
  }

  #comment(): void {
    const { clock, renderer, responder } = this.#options;
    const { comment } = renderer;
    if (comment === undefined) return;
    const again = (): void => {
      if (this.#hasEnded) return;
      if (responder.hasStarted && !this.#isBlocked) this.#write(comment);
      stop = clock.after(commentIntervalMs, again);
    };
    let stop = clock.after(commentIntervalMs, again);
    this.#waits.push(() => stop());
  }

  #finish(): void {
    this.#hasEnded = true;
    this.#options.reader.close();
    this.#stopHeaders();
    for (const forget of this.#waits) forget();
  }
}
