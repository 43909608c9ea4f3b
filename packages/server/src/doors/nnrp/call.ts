import {
  type Core,
  CoreError,
  type Problem,
  problems,
  type Response,
  type ResponseChanges,
  type ResponseRequest,
  type TraceContext,
  toCoreError,
} from "@plenum/core";
import {
  type Backpressure,
  BackpressureLevel,
  type Budget,
  DropReason,
  type OperationListener,
  type PriorityUpdate,
  type ServerOperation,
  type StopCause,
} from "@plenum/nnrp";
import {
  type Diagnostics,
  deriveRequestId,
  EventWriter,
  type FlowPressure,
  type ProfileError,
  profileError,
  profilePayload,
  type RequestEnvelope,
  readEnvelope,
  refusalResult,
  type TerminalResult,
  traceparentOf,
} from "@plenum/profile";
import type { HeaderFields } from "../shared/request-headers.ts";
import { readTrace } from "../shared/trace.ts";
import type { Level } from "./capabilities.ts";
import type { ContinuedResponses } from "./continued.ts";
import { nativeEndOf, statusOf, toProfileError } from "./errors.ts";
import { addBudget, capTokens, type DueTimes, dueTimesOf, toHeaderFields } from "./request.ts";
import { diagnosticsOf } from "./stream.ts";

/** What of a request a log may hold. */
export interface RequestFacts {
  readonly operation: string;
  readonly requestId: string;
}

export interface DoorContext {
  readonly core: Core;
  readonly level: Level;
  readonly offered: ReadonlySet<string>;
  readonly continued: ContinuedResponses;
  /** Told of each request that was read. */
  readonly onRequest: (request: RequestFacts & { readonly traceparent?: string }) => void;
  readonly services?: () => readonly string[];
  /** Told of what went wrong, with the cause that the client does not see. */
  readonly onProblem: (error: CoreError, request: RequestFacts) => void;
}

const pressures: readonly FlowPressure[] = ["none", "soft", "hard", "paused"];

/** One request while it is answered: what the client says meanwhile, and the ways to end it. */
export class Call implements OperationListener {
  readonly context: DoorContext;
  readonly submitted: ServerOperation;
  readonly envelope: RequestEnvelope;
  readonly requestId: string;
  writer: EventWriter;
  readonly #acceptedAtMs: number;
  #priority: PriorityUpdate;
  #tokenBudget: number | undefined;
  #pressure = 0;
  #stopCause: StopCause | undefined;
  #onStop: ((cause: StopCause) => void) | undefined;
  #onDrain: (() => void) | undefined;
  /** Ends the watch of the token. */
  #forget: (() => void) | undefined;
  /** What the client has said since the response was made. */
  #changes: ResponseChanges = {};
  #onChange: ((changes: ResponseChanges) => void) | undefined;
  /** Upper bound of the request itself. */
  #maxTokens = Number.POSITIVE_INFINITY;

  constructor(context: DoorContext, submitted: ServerOperation, envelope: RequestEnvelope, requestId: string) {
    const { policy } = envelope;
    this.context = context;
    this.submitted = submitted;
    this.envelope = envelope;
    this.requestId = requestId;
    // Whoever wants to come back has to know the response's id.
    const diagnostics = policy.diagnostics === true || policy.onDisconnect === "continue";
    this.writer = new EventWriter({ policy: { ...policy, diagnostics }, requestId });
    this.#acceptedAtMs = context.core.clock.now();
    this.#priority = { priorityClass: submitted.session.priorityClass };
  }

  // What the client says

  stop(cause: StopCause): void {
    this.#forget?.();
    this.#stopCause = cause;
    this.#onStop?.(cause);
  }

  drain(): void {
    this.#onDrain?.();
  }

  priority(update: PriorityUpdate): void {
    this.#priority = update;
    this.#change({ priority: this.fields.priority });
  }

  budget(budget: Budget): void {
    const tokens = addBudget(this.#tokenBudget, budget);
    if (tokens === this.#tokenBudget || tokens === undefined) return;
    this.#tokenBudget = tokens;
    this.#change({ maxTokens: Math.min(tokens, this.#maxTokens) });
  }

  deadline(): void {
    const { deadlineMs } = this.fields;
    if (deadlineMs !== undefined) this.#change({ deadlineMs });
  }

  expireAt(): void {
    this.deadline();
  }

  #change(changes: ResponseChanges): void {
    if (this.#onChange === undefined) this.#changes = { ...this.#changes, ...changes };
    else this.#onChange(changes);
  }

  backpressure({ level }: Backpressure): void {
    this.#pressure = Math.max(this.#pressure, level);
  }

  /** From here on the events of an earlier request come again, which asked for ids and maybe for chunks. */
  writeAgain(wantsChunks: boolean): void {
    this.writer = new EventWriter({
      policy: { diagnostics: true, openaiChunk: wantsChunks },
      requestId: this.requestId,
    });
  }

  // What operations ask

  /** Watches the token for as long as the call is open; with its end the call ends, as with a lost connection. */
  watch(begin: (onEnd: () => void) => () => void): void {
    this.#forget = begin(() => {
      this.stop({ kind: "connection-lost" });
      this.fail(new CoreError("unauthorized", "The token was revoked or has expired."));
    });
  }

  /** True once nobody waits for an answer. */
  get isOver(): boolean {
    return this.submitted.finished;
  }

  /** Calls when the operation has to stop, also when it had to already. */
  onStop(listener: (cause: StopCause) => void): void {
    this.#onStop = listener;
    if (this.#stopCause !== undefined) listener(this.#stopCause);
  }

  /** Calls with what the client changes once the request is fitted, also with what it has changed since then. */
  onChange(listener: (changes: ResponseChanges) => void): void {
    this.#onChange = listener;
    if (Object.keys(this.#changes).length > 0) listener(this.#changes);
  }

  /** Calls each time that the client has caught up. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  /** The client reads more slowly than the answer comes. */
  noteSlowReader(): void {
    this.#pressure = Math.max(this.#pressure, BackpressureLevel.soft);
  }

  get due(): DueTimes {
    return dueTimesOf(this.submitted, this.envelope.policy, this.#acceptedAtMs);
  }

  /** Priority, deadline and fate on a lost connection, as the client has said by now. */
  get fields(): ReturnType<typeof toHeaderFields> & HeaderFields {
    return toHeaderFields(this.#priority, this.due, this.envelope.policy, this.trace);
  }

  /** The request's own trace, else that of its frame or session. */
  get trace(): TraceContext | undefined {
    const { traceparent, tracestate } = this.envelope.policy;
    const own = readTrace(traceparent, tracestate);
    const { traceContext } = this.submitted;
    return own ?? (traceContext && { traceparent: traceparentOf(traceContext) });
  }

  /** The request within the token budget that the client has set by now. */
  fit(request: ResponseRequest): ResponseRequest {
    this.#changes = {};
    this.#maxTokens = request.output.maxTokens ?? Number.POSITIVE_INFINITY;
    return capTokens(request, this.#tokenBudget);
  }

  /** What only the connection knows. */
  readonly diagnose = (): Diagnostics => {
    const { trace } = this;
    return {
      transport: this.submitted.connection.carrier.kind,
      flowPressure: pressures[this.#pressure] ?? "none",
      ...(trace === undefined ? {} : { traceparent: trace.traceparent }),
    };
  };

  /** Tells what the client asked to be told. */
  tell(diagnostics: Diagnostics): void {
    const event = this.writer.diagnostics({ ...this.diagnose(), ...diagnostics });
    if (event !== undefined) this.submitted.partial(event);
  }

  // Ends

  complete(body: object, response?: Response): void {
    const { queuedMs, generationMs, totalMs } = response?.timings ?? {};
    this.#end(this.writer.completed(body), {
      ...(queuedMs === undefined ? {} : { queueMs: queuedMs }),
      ...(generationMs === undefined ? {} : { inferenceMs: generationMs }),
      ...(totalMs === undefined ? {} : { totalMs }),
    });
  }

  /** Ends with anything caught. */
  fail(caught: unknown): void {
    const error = toCoreError(caught);
    const { operation } = this.envelope;
    this.context.onProblem(error, { operation, requestId: this.requestId });
    this.failWith(error.problem);
  }

  /**
   * @param details.response the response that ended so.
   * @param details.chunk OpenAI's own last event.
   */
  failWith(problem: Problem, details: { readonly response?: Response; readonly chunk?: string } = {}): void {
    const { submitted, writer } = this;
    if (this.isOver) return;
    this.#forget?.();
    const native = nativeEndOf(problem.code);
    if (native === "cancelled") {
      this.#end(writer.cancelled("peer_cancelled"));
    } else if (native !== undefined) {
      submitted.drop(native.drop, problem.detail);
    } else if (problem.code === "deadline-exceeded" && this.#isNativeDeadline()) {
      submitted.drop(DropReason.deadlineExpired, problem.detail);
    } else {
      this.#retryAfter(problem);
      const diagnostics = this.#diagnosticsOf(problem, details.response);
      const { chunk } = details;
      this.#end(
        writer.failed(toProfileError(problem), {
          status: statusOf(problem),
          ...(diagnostics === undefined ? {} : { diagnostics }),
          ...(chunk === undefined ? {} : { chunk }),
        }),
      );
    }
  }

  #retryAfter({ details, detail: diagnostic }: Problem): void {
    const { retryAfterMs } = details;
    if (retryAfterMs !== undefined) this.submitted.retryAfter({ retryAfterMs, diagnostic });
  }

  /** Told to those who asked, and to all when coming again can help. */
  #diagnosticsOf({ code, details }: Problem, response: Response | undefined): Diagnostics | undefined {
    const isRetryable = problems[code].retry === "later";
    if (!this.writer.wantsDiagnostics && !isRetryable) return undefined;
    const { retryAfterMs, limit } = details;
    return {
      requestId: this.requestId,
      ...this.diagnose(),
      ...(response === undefined ? {} : diagnosticsOf(response)),
      ...(isRetryable ? { retryReason: code } : {}),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(code === "overloaded" && limit !== undefined ? { queuePosition: limit } : {}),
    };
  }

  #isNativeDeadline(): boolean {
    const { nativeMs, timeoutMs } = this.due;
    return nativeMs !== undefined && nativeMs <= (timeoutMs ?? Number.POSITIVE_INFINITY);
  }

  #end(result: TerminalResult, timings: Omit<Parameters<ServerOperation["result"]>[1] & object, "status"> = {}): void {
    this.#forget?.();
    sendEnd(this.submitted, result, timings);
  }
}

/** Reads a submit. What can't be read or taken is answered here. */
export function readCall(context: DoorContext, submitted: ServerOperation): Call | undefined {
  const payload = profilePayload(submitted.payloads);
  if (payload === undefined) {
    refuse(submitted, invalidPayload(submitted));
    return undefined;
  }
  const read = readEnvelope(payload, context.offered);
  if (!read.ok) {
    refuse(submitted, read.error, read.requestId);
    return undefined;
  }
  const requestId = read.envelope.requestId ?? derivedId(submitted);
  return new Call(context, submitted, read.envelope, requestId);
}

function invalidPayload({ bodyError }: ServerOperation): ProfileError {
  const wanted = "A request is one structured_event payload that holds a JSON object";
  return profileError(
    "invalid_submit_body",
    bodyError === undefined ? `${wanted}.` : `${wanted}: ${bodyError.message}.`,
  );
}

/** Answers a submit that never becomes a call. */
export function refuse(submitted: ServerOperation, error: ProfileError, requestId = derivedId(submitted)): void {
  sendEnd(submitted, refusalResult(error, requestId));
}

function derivedId({ id, frameId }: ServerOperation): string {
  return deriveRequestId(id, frameId);
}

function sendEnd(submitted: ServerOperation, { partials, event, status }: TerminalResult, timings: object = {}): void {
  for (const partial of partials) submitted.partial(partial);
  submitted.result({ event }, { status, ...timings });
}
