import type { Route } from "../catalog/catalog.ts";
import type { BackendEvent, RunProgress } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import type { Delivery } from "../ports/backend.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { Lease } from "../ports/lease.ts";
import type { Observer } from "../ports/observer.ts";
import { CoreError, toCoreError } from "../problems/core-error.ts";
import type { ResponseChanges, ResponseRequest } from "../request/request.ts";
import { Assembler } from "./assemble.ts";
import { watchDeadline } from "./deadline.ts";
import { ResponseFold } from "./fold.ts";
import type { KeptLog } from "./kept-log.ts";
import { outcomeOf } from "./outcome.ts";
import type { Response } from "./response.ts";

export interface RunOptions {
  /** Unique part of the id. */
  readonly x: string;
  readonly request: ResponseRequest;
  readonly delivery: Delivery;
  readonly response: Response;
  /** What an earlier process left in its log. Absent: it is new. */
  readonly kept?: KeptLog;
  readonly lease: Lease;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Told when the response begins to run. */
  readonly onStart: (response: Response) => void;
  /** Told once, with the final Response. */
  readonly onEnd: (response: Response, error: CoreError | undefined) => void;
}

/** One response from acceptance to its end: numbers what the backend pushes, appends it to the log, folds it. */
export class Run {
  readonly #options: RunOptions;
  readonly #fold: ResponseFold;
  #assembler: Assembler;
  readonly #abort = new AbortController();
  #clearDeadline: () => void;
  /** As it is asked for when it starts. */
  #request: ResponseRequest;
  readonly #done: Promise<Response>;
  #resolveDone: (response: Response) => void = () => {};
  #sequence = 0;
  /** The first output was noted, or says nothing. */
  #hasOutput = false;
  /** Pieces of output: a lower bound of its tokens where the backend has told no number. */
  #pieces = 0;
  /** Pieces after which it ends. */
  #mostPieces = Number.POSITIVE_INFINITY;
  #hasUsage = false;
  #hasStarted = false;
  #ended = false;

  constructor(options: RunOptions) {
    this.#options = options;
    const { x, request, response, kept, log, lease } = options;
    this.#request = request;
    this.#fold = new ResponseFold(response);
    this.#assembler = new Assembler(x, this.#fold);
    this.#done = new Promise((resolve) => {
      this.#resolveDone = resolve;
    });
    log.open(response.id, lease.epoch, { isDurable: request.store });
    lease.onLost(() => this.cancel("lease-lost"));
    this.#clearDeadline = this.#watchDeadline();
    if (kept === undefined || kept.last === 0) this.#append([{ type: "response.created", atMs: 0, response }]);
    else this.#takeUp(kept, response);
  }

  /** Stands where the log ends; what was changed since its first event is in the record. */
  #takeUp({ entries, last }: KeptLog, { priority, deadlineMs }: Response): void {
    for (const { event } of entries) {
      this.#fold.apply(event);
      if ("delta" in event) this.#pieces += 1;
      else if (event.type === "response.restarted") this.#pieces = 0;
    }
    this.#sequence = last;
    this.#fold.setPriority(priority);
    if (deadlineMs !== undefined) this.#fold.setDeadline(deadlineMs);
  }

  /** Begins again, after a crash or with the next start: what came before is void. */
  restart(attempt: number): void {
    this.#pieces = 0;
    const event: ResponseEvent = { type: "response.restarted", atMs: this.#elapsed(), attempt };
    this.#fold.apply(event);
    this.#assembler = new Assembler(this.#options.x, this.#fold);
    this.#append([event]);
  }

  /** Last event of its log. */
  get sequence(): number {
    return this.#sequence;
  }

  /** The Response as it is now. */
  get response(): Response {
    return this.#fold.snapshot();
  }

  /** Resolves with the final Response; never rejects. */
  get done(): Promise<Response> {
    return this.#done;
  }

  get isBackground(): boolean {
    return this.#options.request.background;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /**
   * Takes changes, already checked, in any state before the end.
   * @returns the Response with them.
   */
  change({ priority, deadlineMs, maxTokens }: ResponseChanges): Response {
    if (priority !== undefined) this.#fold.setPriority(priority);
    if (deadlineMs !== undefined) {
      this.#fold.setDeadline(deadlineMs);
      this.#clearDeadline();
      this.#clearDeadline = this.#watchDeadline();
    }
    if (maxTokens !== undefined) this.#bound(maxTokens);
    return this.#fold.snapshot();
  }

  announce(progress: RunProgress): void {
    this.#options.log.announce(this.#options.response.id, progress);
  }

  /** Runs the request on the route's backend; settles when the backend's slot is free again. Never rejects. */
  async execute({ backend, model }: Route): Promise<void> {
    if (this.#ended) return;
    const { delivery, clock, response } = this.#options;
    this.#fold.setRuntime(backend.id);
    this.#fold.addTimings({ queuedMs: clock.now() - response.createdAt });
    this.#hasStarted = true;
    try {
      const { priority, deadlineMs } = this.#fold.head;
      // What is new comes first: what grows out of a spread has a hidden class of its own each time.
      const asked = { delivery, ...this.#request, model: model.name, priority };
      if (deadlineMs !== undefined) asked.deadlineMs = deadlineMs;
      await backend.respond(asked, (events) => this.#push(events), this.#abort.signal);
      this.#finish();
    } catch (error) {
      this.fail(this.#abort.signal.aborted ? this.#abort.signal.reason : error);
    }
  }

  /** Stops it in any state; a running backend is aborted, the terminal event is written at once. */
  cancel(reason: string): void {
    if (reason === "deadline") {
      this.#passDeadline();
      return;
    }
    const code = reason === "superseded" ? "superseded" : "cancelled";
    this.#stop(new CoreError(code, cancelSentence(reason), { reason }));
  }

  /** Ends it with a problem; a running backend is aborted. */
  fail(error: unknown): void {
    this.#stop(toCoreError(error));
  }

  /** Stops it without an end: it waits again, for the next start of the service. */
  suspend(): void {
    if (this.#ended) return;
    const { status, attempt } = this.#fold.head;
    if (status === "in_progress") this.restart(attempt + 1);
    this.#ended = true;
    this.#clearDeadline();
    this.#abort.abort(new CoreError("interrupted", "The service stops; the response goes on at its next start."));
    this.#resolveDone(this.#fold.snapshot());
  }

  #watchDeadline(): () => void {
    return watchDeadline(this.#options.clock, this.#fold.head.deadlineMs, () => this.#passDeadline());
  }

  #passDeadline(): void {
    const state = this.#fold.head.status === "queued" ? "before it started" : "while it ran";
    this.fail(new CoreError("deadline-exceeded", `The deadline passed ${state}.`));
  }

  /** What a runtime was asked for can't be changed any more; from then on the pieces are counted here. */
  #bound(maxTokens: number): void {
    if (this.#hasStarted) {
      this.#mostPieces = maxTokens * this.#request.candidates;
      this.#endAtBound();
    } else {
      this.#request = { ...this.#request, output: { ...this.#request.output, maxTokens } };
    }
  }

  #endAtBound(): void {
    const { candidates } = this.#request;
    if (this.#ended || this.#pieces < this.#mostPieces || this.#assembler.haveFinished(candidates)) return;
    const batch: ResponseEvent[] = [];
    const atMs = this.#elapsed();
    for (let candidate = 0; candidate < candidates; candidate += 1) {
      this.#assembler.assemble({ type: "finish", candidate, finishReason: "length" }, batch, atMs);
    }
    if (batch.length > 0) this.#append(batch);
    this.#countPieces();
    this.#end(undefined);
    this.#abort.abort(new CoreError("cancelled", "The bound of its output was reached."));
  }

  #stop(error: CoreError): void {
    if (this.#ended) return;
    this.#abort.abort(error);
    this.#end(error);
  }

  #push(events: readonly BackendEvent[]): void {
    if (this.#ended) return;
    const batch: ResponseEvent[] = [];
    const atMs = this.#elapsed();
    for (const event of events) this.#handle(event, batch, atMs);
    if (batch.length > 0) this.#append(batch);
    if (this.#pieces >= this.#mostPieces) this.#endAtBound();
  }

  #handle(event: BackendEvent, batch: ResponseEvent[], atMs: number): void {
    switch (event.type) {
      case "progress":
        this.announce(event.progress);
        return;
      case "accepted":
        this.#accept(event, batch, atMs);
        return;
      case "usage":
        this.#noteUsage(event);
        return;
      default: {
        if (event.type !== "finish") this.#pieces += 1;
        const before = batch.length;
        this.#assembler.assemble(event, batch, atMs);
        if (!this.#hasOutput && batch.length > before) this.#noteFirstOutput(atMs);
      }
    }
  }

  #accept(event: Extract<BackendEvent, { type: "accepted" }>, batch: ResponseEvent[], atMs: number): void {
    const { head } = this.#fold;
    if (head.startedAt !== undefined) return;
    const started: ResponseEvent = { type: "response.in_progress", atMs, runtime: head.runtime ?? "" };
    this.#fold.apply(started);
    batch.push(started);
    if (event.isWhole) this.#hasOutput = true;
    if (event.loadMs !== undefined) this.#fold.addTimings({ loadMs: event.loadMs });
    if (event.inputTokens !== undefined) {
      this.#fold.setUsage({
        inputTokens: event.inputTokens,
        outputTokens: 0,
        cachedInputTokens: 0,
        reasoningTokens: 0,
      });
    }
    this.#options.onStart(this.#fold.snapshot());
    this.#options.observer.responseStarted?.(this.#fold.head);
  }

  #noteUsage(event: Extract<BackendEvent, { type: "usage" }>): void {
    const { usage, loadMs, promptMs, generationMs } = event;
    this.#hasUsage = true;
    this.#fold.setUsage(usage);
    this.#fold.addTimings({ loadMs, promptMs, generationMs });
  }

  #noteFirstOutput(atMs: number): void {
    this.#hasOutput = true;
    this.#fold.addTimings({ firstTokenMs: atMs });
    this.#options.observer.responseFirstOutput?.(this.#fold.head);
  }

  /** The backend's promise resolved: every candidate must have finished. */
  #finish(): void {
    if (this.#ended) return;
    if (this.#assembler.haveFinished(this.#request.candidates)) this.#end(undefined);
    else this.fail(new CoreError("backend-error", "The runtime ended before the answer was complete."));
  }

  #end(error: CoreError | undefined): void {
    this.#ended = true;
    this.#clearDeadline();
    const batch: ResponseEvent[] = [];
    const atMs = this.#elapsed();
    if (error !== undefined) {
      this.#assembler.closeAll(batch, atMs);
      this.#countPieces();
    }
    this.#fold.addTimings({ totalMs: atMs });
    const outcome = outcomeOf(this.#fold.finishes, error);
    this.#fold.setOutcome(outcome, this.#options.clock.now());
    const response = this.#fold.snapshot();
    batch.push({ type: outcome.type, atMs, response });
    this.#append(batch);
    this.#options.onEnd(response, error);
    this.#options.observer.responseEnded?.(response, error);
    this.#resolveDone(response);
  }

  /** What was made before a backend was stopped is counted, too. */
  #countPieces(): void {
    if (this.#hasUsage || this.#pieces === 0) return;
    const none = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
    this.#fold.setUsage({ ...none, ...this.#fold.head.usage, outputTokens: this.#pieces });
  }

  #append(events: readonly ResponseEvent[]): void {
    const { log, response, lease } = this.#options;
    this.#sequence = log.append(response.id, lease.epoch, this.#sequence, events);
  }

  #elapsed(): number {
    return Math.max(0, this.#options.clock.now() - this.#options.response.createdAt);
  }
}

function cancelSentence(reason: string): string {
  switch (reason) {
    case "disconnected":
      return "The connection that made it was lost.";
    case "abandoned":
      return "Nobody came back to read it after the connection was lost.";
    case "superseded":
      return "A later request took its place.";
    case "lease-lost":
      return "Another replica took it over.";
    default:
      return "It was cancelled on request.";
  }
}
