import {
  type ClientOperation,
  type ClientSession,
  type Clock,
  NnrpError,
  type OperationEvent,
  type Progress,
  ReasonCode,
  type SubmitRequest,
} from "@plenum/nnrp";
import { type Diagnostics, readDiagnostics } from "../diagnostics.ts";
import { type RequestEnvelope, type RequestPolicy, writeEnvelope } from "../envelope.ts";
import { profileError } from "../errors.ts";
import type { ProfileEvent, TerminalEvent } from "../events/event.ts";
import { EventReader } from "../events/read-event.ts";
import { EventOrder } from "../order.ts";
import { type CallEnd, cancelledEnd, failedEnd, invalidEnd, lostEnd, retryAfterOf, toCallEnd } from "./call-end.ts";

/** How a request is sent. What NNRP itself offers (`deadline`, `expireAt`, `priority`, …) is passed on. */
export interface CallOptions
  extends RequestPolicy,
    Pick<
      SubmitRequest,
      "deadline" | "expireAt" | "priority" | "traceContext" | "supersedes" | "creditWindow" | "latencyBudgetMs"
    > {
  /** Cancels the request when it fires. */
  readonly signal?: AbortSignal;
  /** 1 to 256 characters. @default made here */
  readonly requestId?: string;
  /** Told of PROGRESS, which is not part of the answer. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface CallLimits {
  /** Bytes of one answer, of all its events; a larger one is cancelled. @default 64 MiB */
  readonly responseBytes: number;
}

/**
 * One request, event by event. Read it once, by `for await`; the last event is the terminal one, and nothing is ever
 * thrown. Leaving the loop early cancels the request. Events are read from the session as they are asked for here, so a
 * reader that is slow holds up the service and no memory fills.
 */
export interface ProfileCall extends AsyncIterable<ProfileEvent> {
  readonly requestId: string;
  /** The operation on the wire, to change its priority or deadline. Undefined when it could not be submitted. */
  readonly operation: ClientOperation | undefined;
  /** Known once the terminal event was read, or the call was cancelled. */
  readonly end: CallEnd | undefined;
  /** What the service told beside the answer so far. */
  readonly diagnostics: Diagnostics;
  /** Milliseconds to wait before trying again, where the service said so. */
  readonly retryAfterMs: number | undefined;
  /** Sends CANCEL and ends at once; what arrives later is dropped. */
  cancel(): void;
}

export interface StartCallOptions {
  readonly session: ClientSession;
  readonly envelope: RequestEnvelope & { readonly requestId: string };
  readonly options: CallOptions;
  readonly limits: CallLimits;
  readonly clock: Clock;
}

/** Submits a request. Never throws: what goes wrong is the call's end. */
export function startCall(start: StartCallOptions): ProfileCall {
  return new SubmittedCall(start);
}

/** A call that was refused before anything was sent. */
export function refusedCall(requestId: string, end: CallEnd): ProfileCall {
  return {
    requestId,
    operation: undefined,
    end,
    diagnostics: {},
    retryAfterMs: undefined,
    cancel() {},
    async *[Symbol.asyncIterator]() {
      yield end.event;
    },
  };
}

class SubmittedCall implements ProfileCall {
  readonly requestId: string;
  readonly operation: ClientOperation | undefined;
  end: CallEnd | undefined;
  diagnostics: Diagnostics = {};
  retryAfterMs: number | undefined;
  readonly #reader = new EventReader();
  readonly #order = new EventOrder();
  readonly #limits: CallLimits;
  readonly #onProgress: CallOptions["onProgress"];
  #bytes = 0;
  /** Ends the wait for the next event. */
  #wake: () => void = () => {};
  #release: () => void = () => {};

  constructor({ session, envelope, options, limits, clock }: StartCallOptions) {
    this.requestId = envelope.requestId;
    this.#limits = limits;
    this.#onProgress = options.onProgress;
    if (options.signal?.aborted) {
      this.end = cancelledEnd("client_cancelled", "client");
      return;
    }
    try {
      this.operation = session.submit(toSubmit(envelope, options));
    } catch (error) {
      this.end = lostEnd(toNnrpError(error));
      return;
    }
    this.#watch(options, clock);
  }

  cancel(): void {
    this.#stop(cancelledEnd("client_cancelled", "client"), ReasonCode.userCancelled);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ProfileEvent, void, undefined> {
    const events = this.operation?.[Symbol.asyncIterator]();
    try {
      while (events !== undefined && this.end === undefined) {
        const next = await this.#next(events);
        if (next !== undefined) yield* this.#take(next);
        else this.end ??= lostEnd(new NnrpError("connection-closed", "The operation has no end."));
      }
    } finally {
      this.#release();
      if (this.end === undefined) this.cancel();
      // Nobody waits for it: the peer may take its time to answer a cancel.
      void events?.return?.();
    }
    if (this.end !== undefined) yield this.#last(this.end);
  }

  /** @returns undefined when the call ended here meanwhile. */
  #next(events: AsyncIterator<OperationEvent>): Promise<OperationEvent | undefined> {
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      events.next().then(
        ({ value, done }) => resolve(done === true ? undefined : value),
        () => resolve(undefined),
      );
    });
  }

  *#take(event: OperationEvent): Generator<ProfileEvent, void, undefined> {
    switch (event.type) {
      case "partial":
        yield* this.#partial(event.body);
        return;
      case "retry-after":
      case "recoverable-error":
        this.retryAfterMs = event.retryAfterMs ?? this.retryAfterMs;
        return;
      case "result":
      case "dropped":
      case "failed":
        this.end = toCallEnd(event, this.#reader, this.#order);
        return;
      case "progress":
        this.#onProgress?.(event);
        return;
      case "trace-context":
      case "backpressure":
        return;
    }
  }

  *#partial(body: Uint8Array): Generator<ProfileEvent, void, undefined> {
    this.#bytes += body.length;
    if (this.#bytes > this.#limits.responseBytes) {
      const message = `The answer is larger than ${this.#limits.responseBytes} bytes.`;
      this.#stop(failedEnd(profileError("response_too_large", message), "client"), ReasonCode.budgetExceeded);
      return;
    }
    const result = this.#reader.read(body);
    if (result.kind === "unknown") return;
    if (result.kind === "invalid") {
      this.#stop(invalidEnd(result.message), ReasonCode.unspecified);
      return;
    }
    const { event, before } = result;
    const fault = (before && this.#order.takeImplicit(before)) ?? this.#order.take(event, "partial");
    if (fault !== undefined) {
      this.#stop(invalidEnd(fault.message), ReasonCode.unspecified);
      return;
    }
    if (event.type === "response.diagnostics") {
      this.diagnostics = { ...this.diagnostics, ...readDiagnostics(event.diagnostics) };
    }
    if (before !== undefined) yield before;
    yield event;
  }

  #last({ event }: CallEnd): TerminalEvent {
    this.retryAfterMs = retryAfterOf(event) ?? this.retryAfterMs;
    if (event.type === "response.error" && event.diagnostics !== undefined) {
      this.diagnostics = { ...this.diagnostics, ...readDiagnostics(event.diagnostics) };
    }
    return event;
  }

  /** Ends on this side. Late events of the operation are nobody's any more. */
  #stop(end: CallEnd, reason: number): void {
    if (this.end !== undefined) return;
    this.end = end;
    this.#release();
    this.operation?.cancel(reason);
    this.#wake();
  }

  #watch({ signal, timeoutMs, deadline }: CallOptions, clock: Clock): void {
    const abort = (): void => this.cancel();
    signal?.addEventListener("abort", abort, { once: true });
    const now = clock.now();
    const dueAt = Math.min(now + (timeoutMs || Number.POSITIVE_INFINITY), deadline?.unixMs ?? Number.POSITIVE_INFINITY);
    let forget = (): void => {};
    const wait = (): void => {
      if (clock.now() < dueAt) forget = clock.after(dueAt - clock.now(), wait);
      else
        this.#stop(
          failedEnd(profileError("request_timeout", "The answer did not come in time."), "client"),
          ReasonCode.deadlineExpired,
        );
    };
    if (Number.isFinite(dueAt)) wait();
    this.#release = () => {
      signal?.removeEventListener("abort", abort);
      forget();
    };
  }
}

function toSubmit(envelope: RequestEnvelope, options: CallOptions): SubmitRequest {
  const { deadline, expireAt, priority, traceContext, supersedes, creditWindow, latencyBudgetMs } = options;
  return {
    body: { event: writeEnvelope(envelope) },
    ...(deadline && { deadline }),
    ...(expireAt && { expireAt }),
    ...(priority && { priority }),
    ...(traceContext && { traceContext }),
    ...(supersedes && { supersedes }),
    ...(creditWindow !== undefined && { creditWindow }),
    ...(latencyBudgetMs !== undefined && { latencyBudgetMs }),
  };
}

function toNnrpError(error: unknown): NnrpError {
  if (error instanceof NnrpError) return error;
  return new NnrpError("invalid-argument", "The request can't be written as JSON.", { cause: error });
}
