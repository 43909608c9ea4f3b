import { decodeBody, encodeBody, eventPayload, kindsOf } from "../../codec/body-regions.ts";
import { headerBytes } from "../../codec/frame.ts";
import { messages } from "../../codec/messages.ts";
import type { AnyPacket, AnyPacketDraft, Packet } from "../../codec/packet-types.ts";
import {
  BackpressureLevel,
  DropReason,
  ErrorScope,
  FlowScopeKind,
  FlowUpdateReason,
  InFlightPolicy,
  LossTolerancePolicy,
  SessionCloseReason,
  SessionCloseStatus,
} from "../../codec/registries.ts";
import type { TypedPayload } from "../../codec/typed-payload.ts";
import { NnrpWireError } from "../../codec/wire-error.ts";
import type { Clock } from "../clock.ts";
import {
  readBackpressure,
  readProgress,
  readRecoverableError,
  readRetryAfter,
  readTraceContext,
  timeLimitPacket,
  traceContextPacket,
} from "../control-packets.ts";
import type { TraceContext } from "../controls.ts";
import { NnrpError } from "../errors.ts";
import type { ClientLimits } from "../limits.ts";
import { RecentIds } from "../recent.ts";
import { decodeDiagnostic, encodeText } from "../text.ts";
import { Operation, type OperationHost, type Prepared } from "./operation.ts";
import type {
  ClientConnection,
  ClientOperation,
  ClientSession,
  OperationEvent,
  ResumeTicket,
  SubmitRequest,
} from "./types.ts";

/** Ended operations whose late packets are known to be late. */
const recentOperations = 256;
const submitHead = headerBytes + messages.FRAME_SUBMIT.metadata.size;

/** What a session needs of its connection. */
export interface SessionHost {
  readonly connection: ClientConnection;
  readonly clock: Clock;
  readonly limits: ClientLimits;
  send(draft: AnyPacketDraft): void;
  unread(bytes: number): void;
  misbehaved(detail: string): void;
  sessionEnded(session: Session): void;
}

export interface SessionTerms {
  readonly id: number;
  readonly maxInFlight: number;
  readonly operationCredit: number;
  readonly resumeTicket: ResumeTicket | undefined;
  readonly resumed: boolean;
  readonly priorityClass: number;
}

export class Session implements ClientSession, OperationHost {
  readonly id: number;
  readonly maxInFlight: number;
  readonly operationCredit: number;
  readonly resumeTicket: ResumeTicket | undefined;
  readonly resumed: boolean;
  readonly priorityClass: number;
  readonly closed: Promise<NnrpError | undefined>;
  isClosed = false;
  readonly #host: SessionHost;
  #resolveClosed: (error: NnrpError | undefined) => void = () => {};
  #closing: Promise<void> | undefined;
  readonly #byFrame = new Map<number, Operation>();
  readonly #queue: Operation[] = [];
  readonly #recentFrames = new RecentIds<number>(recentOperations);
  #nextFrame = 1;
  #nextOperation = 1n;
  #highestOperation = 0n;
  #paused = false;
  #cancelPause: (() => void) | undefined;
  #window = Number.POSITIVE_INFINITY;

  constructor(host: SessionHost, terms: SessionTerms) {
    this.#host = host;
    this.id = terms.id;
    this.maxInFlight = terms.maxInFlight;
    this.operationCredit = terms.operationCredit;
    this.resumeTicket = terms.resumeTicket;
    this.resumed = terms.resumed;
    this.priorityClass = terms.priorityClass;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  get session(): ClientSession {
    return this;
  }

  get connection(): ClientConnection {
    return this.#host.connection;
  }

  get inFlight(): number {
    return this.#byFrame.size;
  }

  // Sending

  submit(request: SubmitRequest, onEvent?: (event: OperationEvent) => void): ClientOperation {
    if (this.isClosed || this.#closing !== undefined) throw new NnrpError("session-closed", "The session is closed");
    if (this.#queue.length >= this.#host.limits.queuedOperations) {
      throw new NnrpError("limit-reached", "Too many operations wait (queuedOperations)");
    }
    const operation = new Operation(this, this.#prepare(request), onEvent);
    if (request.signal?.aborted) {
      operation.cancel();
      return operation;
    }
    this.#queue.push(operation);
    this.#sendQueued();
    return operation;
  }

  #prepare(request: SubmitRequest): Prepared {
    const payloads = layOut(request.body);
    const body = encodeBody({ payloads });
    if (submitHead + body.byteLength > this.connection.maxBodyBytes) {
      throw new NnrpError("limit-reached", `The body has ${body.byteLength} bytes, more than the server takes`);
    }
    const id = request.operationId ?? this.#nextOperation;
    if (id <= 0n || id > 0xffff_ffff_ffff_ffffn) {
      throw new NnrpError("invalid-argument", "operationId must be from 1 to 2^64 - 1");
    }
    if (id >= this.#nextOperation) this.#nextOperation = id + 1n;
    return { id, request, body, payloadKinds: kindsOf(payloads), payloads };
  }

  #sendQueued(): void {
    while (!this.#paused && this.#byFrame.size < Math.min(this.maxInFlight, this.#window)) {
      const operation = this.#queue.shift();
      if (operation === undefined) return;
      this.#sendSubmit(operation);
    }
  }

  #sendSubmit(operation: Operation): void {
    const { request, body, payloadKinds, payloads } = operation.prepared;
    operation.frameId = this.#nextFrame;
    operation.queued = false;
    this.#nextFrame += 1;
    this.#byFrame.set(operation.frameId, operation);
    if (operation.id > this.#highestOperation) this.#highestOperation = operation.id;
    this.#supersede(operation, request.supersedes);
    if (request.deadline !== undefined) {
      this.send(timeLimitPacket("DEADLINE", operation, operation.nextControl(), request.deadline));
    }
    this.send({
      type: "FRAME_SUBMIT",
      sessionId: this.id,
      frameId: operation.frameId,
      traceId: request.traceId ?? 0n,
      metadata: {
        operationId: operation.id,
        latencyBudgetMs: request.latencyBudgetMs ?? 0,
        lossTolerancePolicy: LossTolerancePolicy.inheritSession,
        payloadKindBitmap: payloadKinds,
        payloadFrameCount: payloads.length,
      },
      body,
    });
    operation.sendFirstControls();
  }

  #supersede(operation: Operation, old: ClientOperation | undefined): void {
    if (old === undefined || old.finished) return;
    if (old.queued) {
      old.cancel();
      return;
    }
    this.send({
      type: "SUPERSEDE",
      sessionId: this.id,
      frameId: old.frameId,
      metadata: {
        oldOperationId: old.id,
        newOperationId: operation.id,
        controlSequence: BigInt(operation.nextControl()),
        dropReasonCode: DropReason.superseded,
      },
    });
  }

  sendTraceContext(context: TraceContext): void {
    if (this.#closing === undefined) this.send(traceContextPacket({ sessionId: this.id, frameId: 0 }, context));
  }

  /** Nothing is sent once the session is closing: peers lose the whole connection over it. */
  send(draft: AnyPacketDraft): void {
    if (!this.isClosed && this.#closing === undefined) this.#host.send(draft);
  }

  unread(bytes: number): void {
    this.#host.unread(bytes);
  }

  withdraw(operation: Operation): void {
    const at = this.#queue.indexOf(operation);
    if (at >= 0) this.#queue.splice(at, 1);
  }

  expectEnd(operation: Operation): () => void {
    return this.#host.clock.after(this.#host.limits.cancelMs, () => {
      this.#end(operation, {
        type: "failed",
        error: new NnrpError("timeout", "The peer did not end the cancelled operation in time"),
      });
    });
  }

  close(options: { readonly policy?: "drain" | "abort"; readonly drainTimeoutMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  async #close(options: { readonly policy?: "drain" | "abort"; readonly drainTimeoutMs?: number }): Promise<void> {
    if (this.isClosed) return;
    const drainTimeoutMs = options.policy === "abort" ? 0 : (options.drainTimeoutMs ?? 0);
    for (const operation of this.#queue.splice(0)) {
      operation.end({ type: "failed", error: new NnrpError("session-closed", "The session was closed") });
    }
    this.#host.send({
      type: "SESSION_CLOSE",
      sessionId: this.id,
      metadata: {
        closeReason: SessionCloseReason.clientShutdown,
        inFlightPolicy: options.policy === "abort" ? InFlightPolicy.abort : InFlightPolicy.drain,
        drainTimeoutMs,
        lastOperationId: this.#highestOperation,
        sessionCloseTag: this.id,
      },
    });
    const cancel = this.#host.clock.after(this.#host.limits.closeMs + drainTimeoutMs, () => this.finish(undefined));
    await this.closed;
    cancel();
  }

  /** The session is over; what is live ends with it. */
  finish(error: NnrpError | undefined): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#cancelPause?.();
    const cause = error ?? new NnrpError("session-closed", "The session was closed");
    for (const operation of [...this.#byFrame.values(), ...this.#queue.splice(0)]) {
      operation.end({ type: "failed", error: cause });
    }
    this.#byFrame.clear();
    this.#host.sessionEnded(this);
    this.#resolveClosed(error);
  }

  // Receiving

  receive(packet: AnyPacket): void {
    switch (packet.type) {
      case "PARTIAL_RESULT": {
        const { operationId, resultSequence: sequence, deltaSequence, flags } = packet.metadata;
        const operation = this.#find(packet.frameId, operationId, packet.type);
        operation?.emit({ type: "partial", body: packet.body, sequence, deltaSequence, final: (flags & 1) !== 0 });
        return;
      }
      case "PROGRESS":
        this.#find(packet.frameId, packet.metadata.operationId, packet.type)?.emit({
          type: "progress",
          ...readProgress(packet),
        });
        return;
      case "RESULT_PUSH":
        this.#result(packet);
        return;
      case "RESULT_DROP":
        this.#end(this.#find(packet.frameId, undefined, packet.type), dropped(0, "", false));
        return;
      case "RESULT_DROP_REASON": {
        const { operationId, dropReasonCode, flags } = packet.metadata;
        const operation = this.#find(packet.frameId, operationId, packet.type);
        this.#end(operation, dropped(dropReasonCode, decodeDiagnostic(packet.body), (flags & 2) !== 0));
        return;
      }
      case "SUPERSEDE": {
        const { oldOperationId, dropReasonCode } = packet.metadata;
        const operation = this.#find(packet.frameId, oldOperationId, packet.type);
        this.#end(operation, dropped(dropReasonCode || DropReason.superseded, decodeDiagnostic(packet.body), false));
        return;
      }
      case "CANCEL":
      case "ABORT":
        this.#aborted(packet);
        return;
      case "RETRY_AFTER":
        this.#tell(packet.frameId, { type: "retry-after", ...readRetryAfter(packet) });
        return;
      case "ERROR_RECOVERABLE":
        this.#tell(packet.frameId, { type: "recoverable-error", ...readRecoverableError(packet) });
        return;
      case "TRACE_CONTEXT":
        this.#tell(packet.frameId, { type: "trace-context", ...readTraceContext(packet) });
        return;
      case "BACKPRESSURE":
        this.#tell(packet.frameId, { type: "backpressure", ...readBackpressure(packet) });
        if ((packet.metadata.flags & 2) === 0) {
          this.#pause(packet.metadata.pressureLevel === BackpressureLevel.paused, packet.metadata.retryAfterMs);
        }
        return;
      case "CREDIT_UPDATE":
        if ((packet.metadata.flags & 2) !== 0) return;
        this.#window = Number(packet.metadata.creditWindow);
        this.#pause(false, 0);
        return;
      case "FLOW_UPDATE":
        if (packet.metadata.scopeKind !== FlowScopeKind.session) return;
        this.#pause(packet.metadata.updateReason === FlowUpdateReason.pause, packet.metadata.retryAfterMs);
        return;
      case "SESSION_CLOSE_ACK":
        if (packet.metadata.closeStatus >= SessionCloseStatus.closed) this.finish(undefined);
        return;
      case "SESSION_CLOSE":
        this.#host.send({
          type: "SESSION_CLOSE_ACK",
          sessionId: this.id,
          metadata: { closeStatus: SessionCloseStatus.closed, lastOperationId: packet.metadata.lastOperationId },
        });
        this.finish(new NnrpError("session-closed", "The server closed the session"));
        return;
      case "PING":
        this.send({ type: "PONG", sessionId: this.id });
        return;
      case "ERROR":
        this.#error(packet);
        return;
      case "SESSION_OPEN_ACK":
      case "CLIENT_HELLO":
      case "SERVER_HELLO_ACK":
      case "SESSION_OPEN":
      case "FRAME_SUBMIT":
      case "FRAME_CANCEL":
      case "TRANSPORT_PROBE":
      case "TRANSPORT_PROBE_ACK":
      case "CLOSE":
        this.#host.misbehaved(`${packet.type} has no place in a session`);
        return;
      default:
        // Hints, objects, caches, routes, capabilities: nothing that this side asked for.
        return;
    }
  }

  #result(packet: Packet<"RESULT_PUSH">): void {
    const { metadata, body } = packet;
    this.#end(this.#find(packet.frameId, undefined, packet.type), {
      type: "result",
      status: metadata.statusCode,
      resultClass: metadata.resultClass,
      flags: metadata.resultFlags,
      inferenceMs: metadata.inferenceMs,
      queueMs: metadata.queueMs,
      totalMs: metadata.serverTotalMs,
      body,
      payloads: readPayloads(body, metadata.payloadKindBitmap, metadata.payloadFrameCount),
    });
  }

  #aborted(packet: Packet<"CANCEL" | "ABORT">): void {
    const { operationId } = packet.metadata;
    const error = new NnrpError("aborted", decodeDiagnostic(packet.body) || "The server aborted the operation");
    if (operationId === 0n) {
      for (const operation of [...this.#byFrame.values()]) this.#end(operation, { type: "failed", error });
    } else this.#end(this.#find(packet.frameId, operationId, packet.type), { type: "failed", error });
  }

  #error(packet: Packet<"ERROR">): void {
    const { errorScope, errorCode, isFatal, relatedFrameId } = packet.metadata;
    const text = decodeDiagnostic(packet.body) || `error ${errorCode}`;
    const error = new NnrpError("protocol-error", `The server reports: ${text}`, { nnrpCode: errorCode });
    const frameId = packet.frameId || relatedFrameId;
    if (errorScope === ErrorScope.frame && frameId !== 0) {
      this.#end(this.#find(frameId, undefined, packet.type), { type: "failed", error });
    } else if (isFatal !== 0) this.finish(error);
  }

  /** An event that does not end an operation; with frame 0 it is about all of them. */
  #tell(frameId: number, event: OperationEvent): void {
    if (frameId === 0) for (const operation of [...this.#byFrame.values()]) operation.emit(event);
    else this.#find(frameId, undefined, event.type)?.emit(event);
  }

  /** Finds whom a packet is about. Late ones are nothing; unknown ones and wrong pairs are counted. */
  #find(frameId: number, operationId: bigint | undefined, type: string): Operation | undefined {
    const operation = this.#byFrame.get(frameId);
    if (operation !== undefined && (operationId === undefined || operation.id === operationId)) return operation;
    if (operation !== undefined || !this.#recentFrames.has(frameId)) {
      this.#host.misbehaved(`${type} for an unknown operation`);
    }
    return undefined;
  }

  #end(operation: Operation | undefined, end: Parameters<Operation["end"]>[0]): void {
    if (operation === undefined) return;
    if (this.#byFrame.delete(operation.frameId)) this.#recentFrames.add(operation.frameId);
    operation.end(end);
    this.#sendQueued();
  }

  #pause(paused: boolean, retryAfterMs: number): void {
    this.#paused = paused;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    if (!paused) this.#sendQueued();
    else if (retryAfterMs > 0) this.#cancelPause = this.#host.clock.after(retryAfterMs, () => this.#pause(false, 0));
  }
}

const dropped = (reason: number, diagnostic: string, retryable: boolean) =>
  ({ type: "dropped", reason, diagnostic, retryable }) as const;

function layOut(body: SubmitRequest["body"]): readonly TypedPayload[] {
  if ("payloads" in body) return body.payloads;
  return [eventPayload(typeof body.event === "string" ? encodeText(body.event) : body.event)];
}

function readPayloads(body: Uint8Array, kinds: number, count: number): readonly TypedPayload[] | undefined {
  try {
    return decodeBody(body, kinds, count).payloads;
  } catch (error) {
    if (error instanceof NnrpWireError) return undefined;
    throw error;
  }
}
