import { decodeBody, encodeBody, eventPayload, kindsOf } from "../../codec/body-regions.ts";
import { noBytes } from "../../codec/packet.ts";
import type { Packet } from "../../codec/packet-types.ts";
import { BackpressureLevel, DropReason, PayloadKind, ResultClass, RuntimeRole } from "../../codec/registries.ts";
import type { TypedPayload } from "../../codec/typed-payload.ts";
import { NnrpWireError } from "../../codec/wire-error.ts";
import type { Clock } from "../clock.ts";
import {
  progressPacket,
  recoverableErrorPacket,
  retryAfterPacket,
  type Target,
  traceContextPacket,
} from "../control-packets.ts";
import type {
  Backpressure,
  Budget,
  PriorityUpdate,
  Progress,
  RecoverableError,
  RetryAfter,
  TimeLimit,
  TraceContext,
} from "../controls.ts";
import type { OperationAddress, Outbox } from "../outbox.ts";
import { encodeDiagnostic, encodeText } from "../text.ts";
import type {
  OperationListener,
  PartialOptions,
  ResultBody,
  ResultOptions,
  ServerConnection,
  ServerOperation,
  ServerSession,
  StopCause,
} from "./types.ts";

/** What an operation needs of its session. */
export interface OperationHost {
  readonly session: ServerSession;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** The connection takes more bytes. */
  takesMore(): boolean;
  /** The peer paused the whole session. */
  readonly paused: boolean;
  /** Too much waits already: nothing more may be written, the connection is lost. */
  overflows(): boolean;
  /** The operation ended. */
  ended(operation: Operation): void;
  /** A function of the application threw. */
  failed(error: unknown): void;
}

/** The reason that is sent when the application does not give its own. */
function dropReasonOf(cause: StopCause): number {
  switch (cause.kind) {
    case "cancel":
    case "abort":
    case "frame-cancel":
    case "session-closed":
      return DropReason.peerCancelled;
    case "deadline":
    case "expired":
      return DropReason.deadlineExpired;
    case "superseded":
      return cause.supersede.reason === 0 ? DropReason.superseded : cause.supersede.reason;
    case "server-closing":
    case "connection-lost":
      return DropReason.transportClosed;
  }
}

const saturate = (value: number | undefined) => Math.min(Math.max(Math.round(value ?? 0), 0), 0xffff);

export class Operation implements ServerOperation, OperationAddress, Target {
  readonly id: bigint;
  readonly idLow: number;
  readonly idHigh: number;
  readonly frameId: number;
  readonly traceId: bigint;
  readonly body: Uint8Array;
  readonly payloadKinds: number;
  readonly latencyBudgetMs: number;
  readonly #host: OperationHost;
  readonly #payloadCount: number;
  listener: OperationListener | undefined;
  deadline: TimeLimit | undefined;
  expireAt: TimeLimit | undefined;
  supersedes: bigint | undefined;
  finished = false;
  #ownTraceContext: TraceContext | undefined;
  #read: { payloads: readonly TypedPayload[] | undefined; error: NnrpWireError | undefined } | undefined;
  #stopped = false;
  #sequence = 0;
  #controlSequence = 0;
  /** Partials that the peer still takes; undefined when it does not count. */
  #credit: bigint | undefined;
  #paused = false;
  /** Somebody was told that it is not writable. */
  #waits = false;
  #cancelTimer: (() => void) | undefined;
  #cancelPause: (() => void) | undefined;

  constructor(host: OperationHost, packet: Packet<"FRAME_SUBMIT">) {
    const { metadata } = packet;
    this.#host = host;
    this.id = metadata.operationId;
    this.idLow = Number(this.id & 0xffff_ffffn);
    this.idHigh = Number(this.id >> 32n);
    this.frameId = packet.frameId;
    this.traceId = packet.traceId;
    this.body = packet.body;
    this.payloadKinds = metadata.payloadKindBitmap;
    this.#payloadCount = metadata.payloadFrameCount;
    this.latencyBudgetMs = metadata.latencyBudgetMs;
  }

  get session(): ServerSession {
    return this.#host.session;
  }

  get sessionId(): number {
    return this.#host.session.id;
  }

  get operationId(): bigint {
    return this.id;
  }

  get connection(): ServerConnection {
    return this.#host.session.connection;
  }

  get traceContext(): TraceContext | undefined {
    return this.#ownTraceContext ?? this.#host.session.traceContext;
  }

  get payloads(): readonly TypedPayload[] | undefined {
    return this.#readBody().payloads;
  }

  get bodyError(): NnrpWireError | undefined {
    return this.#readBody().error;
  }

  #readBody(): { payloads: readonly TypedPayload[] | undefined; error: NnrpWireError | undefined } {
    if (this.#read !== undefined) return this.#read;
    try {
      const { payloads } = decodeBody(this.body, this.payloadKinds, this.#payloadCount);
      this.#read = { payloads, error: undefined };
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#read = { payloads: undefined, error };
    }
    return this.#read;
  }

  get writable(): boolean {
    if (this.finished) return false;
    if (!this.#paused && !this.#host.paused && this.#credit !== 0n && this.#host.takesMore()) return true;
    this.#waits = true;
    return false;
  }

  partial(body: Uint8Array | string, options?: PartialOptions): boolean {
    if (!this.#mayWrite()) return false;
    this.#sequence += 1;
    const delta = options?.deltaSequence;
    const flags = options?.final ? 1 : 0;
    this.#host.outbox.partial(this, this.#sequence, delta === undefined ? this.#sequence : Number(delta), flags, body);
    if (this.#credit !== undefined && this.#credit > 0n) this.#credit -= 1n;
    return this.writable;
  }

  progress(progress: Progress): boolean {
    if (!this.#mayWrite()) return false;
    this.#controlSequence += 1;
    this.#host.outbox.write(progressPacket(this, this.#controlSequence, progress));
    return this.writable;
  }

  retryAfter(retry: RetryAfter): boolean {
    if (!this.#mayWrite()) return false;
    this.#controlSequence += 1;
    this.#host.outbox.write(retryAfterPacket(this, this.#controlSequence, RuntimeRole.server, retry));
    return true;
  }

  recoverableError(error: RecoverableError): boolean {
    if (!this.#mayWrite()) return false;
    this.#host.outbox.write(recoverableErrorPacket(this, RuntimeRole.server, error));
    return true;
  }

  sendTraceContext(context: TraceContext): boolean {
    if (!this.#mayWrite()) return false;
    this.#host.outbox.write(traceContextPacket(this, context));
    return true;
  }

  result(body: ResultBody, options: ResultOptions = {}): boolean {
    if (!this.#mayWrite()) return false;
    const { bytes, kinds, count } = layOut(body);
    this.#host.outbox.write({
      type: "RESULT_PUSH",
      sessionId: this.sessionId,
      frameId: this.frameId,
      metadata: {
        statusCode: options.status ?? 200,
        resultFlags: options.flags ?? 0,
        resultClass: options.resultClass ?? ResultClass.complete,
        inferenceMs: saturate(options.inferenceMs),
        queueMs: saturate(options.queueMs),
        serverTotalMs: saturate(options.totalMs),
        payloadKindBitmap: kinds,
        payloadFrameCount: count,
      },
      body: bytes,
    });
    this.#end();
    return true;
  }

  drop(reason: number, diagnostic?: string, options?: { readonly retryable?: boolean }): boolean {
    if (!this.#mayWrite()) return false;
    const body = encodeDiagnostic(diagnostic);
    this.#host.outbox.write({
      type: "RESULT_DROP_REASON",
      sessionId: this.sessionId,
      frameId: this.frameId,
      metadata: {
        operationId: this.id,
        resultSequence: BigInt(this.#sequence + 1),
        dropReasonCode: reason,
        sourceRole: RuntimeRole.server,
        flags: 1 | (options?.retryable ? 2 : 0),
      },
      ...(body === undefined ? {} : { body }),
    });
    this.#end();
    return true;
  }

  /** Something must end it: the application first, then this side by itself. */
  stop(cause: StopCause): void {
    if (this.finished || this.#stopped) return;
    this.#stopped = true;
    if (cause.kind === "connection-lost") this.#end();
    try {
      this.listener?.stop?.(cause);
    } catch (error) {
      this.#host.failed(error);
    }
    this.drop(dropReasonOf(cause));
  }

  /** The connection takes bytes again, or the session goes on. */
  resume(): void {
    if (!this.#waits || !this.writable) return;
    this.#waits = false;
    try {
      this.listener?.drain?.();
    } catch (error) {
      this.#host.failed(error);
    }
  }

  takePriority(update: PriorityUpdate): void {
    this.listener?.priority?.(update);
  }

  takeDeadline(limit: TimeLimit): void {
    this.deadline = limit;
    this.listener?.deadline?.(limit);
    this.watchTime();
  }

  takeExpiry(limit: TimeLimit): void {
    this.expireAt = limit;
    this.listener?.expireAt?.(limit);
    this.watchTime();
  }

  /** Stops the operation at the earlier of its two times. An EXPIRE_AT without flags is only told. */
  watchTime(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.finished) return;
    const deadline = this.deadline?.unixMs ?? Number.POSITIVE_INFINITY;
    const binding = this.expireAt?.discardStale || this.expireAt?.emitDropReason;
    const expiry = binding ? (this.expireAt?.unixMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const next = Math.min(deadline, expiry);
    if (next === Number.POSITIVE_INFINITY) return;
    const left = next - this.#host.clock.now();
    if (left <= 0) this.stop({ kind: deadline <= expiry ? "deadline" : "expired" });
    else this.#cancelTimer = this.#host.clock.after(left, () => this.watchTime());
  }

  takeBudget(budget: Budget): void {
    this.listener?.budget?.(budget);
  }

  takeTraceContext(context: TraceContext): void {
    this.#ownTraceContext = context;
    this.listener?.traceContext?.(context);
  }

  takeCredit(window: bigint): void {
    this.#credit = window;
    this.#paused = false;
    this.listener?.credit?.(window);
    this.resume();
  }

  takeBackpressure(pressure: Backpressure): void {
    this.#paused = pressure.level === BackpressureLevel.paused;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    if (this.#paused && pressure.retryAfterMs) {
      this.#cancelPause = this.#host.clock.after(pressure.retryAfterMs, () => {
        this.#paused = false;
        this.resume();
      });
    }
    this.listener?.backpressure?.(pressure);
  }

  #mayWrite(): boolean {
    return !this.finished && !this.#host.overflows();
  }

  #end(): void {
    if (this.finished) return;
    this.finished = true;
    this.#cancelTimer?.();
    this.#cancelPause?.();
    this.#host.ended(this);
  }
}

function layOut(body: ResultBody): { bytes: Uint8Array; kinds: number; count: number } {
  if (body === undefined) return { bytes: noBytes, kinds: 0, count: 0 };
  if ("raw" in body) return { bytes: body.raw, kinds: body.payloadKinds, count: body.payloadCount };
  if ("payloads" in body) {
    return { bytes: encodeBody(body), kinds: kindsOf(body.payloads), count: body.payloads.length };
  }
  const event = typeof body.event === "string" ? encodeText(body.event) : body.event;
  return { bytes: encodeBody({ payloads: [eventPayload(event)] }), kinds: PayloadKind.structuredEvent, count: 1 };
}
