import type { AnyPacket, AnyPacketDraft, Packet } from "../../codec/packet-types.ts";
import {
  BackpressureLevel,
  CacheMissReason,
  DropReason,
  FlowScopeKind,
  FlowUpdateReason,
  InFlightPolicy,
  SessionCloseStatus,
  SessionPatchAckStatus,
  SessionPatchRejectReason,
} from "../../codec/registries.ts";
import type { Clock } from "../clock.ts";
import {
  backpressurePacket,
  creditPacket,
  readBackpressure,
  readBudget,
  readPriority,
  readSupersede,
  readTimeLimit,
  readTraceContext,
  traceContextPacket,
} from "../control-packets.ts";
import type { Backpressure, OptionalMessageName, Supersede, TimeLimit, TraceContext } from "../controls.ts";
import type { ServerLimits } from "../limits.ts";
import type { Outbox } from "../outbox.ts";
import { RecentIds } from "../recent.ts";
import { decodeDiagnostic } from "../text.ts";
import { Operation, type OperationHost } from "./operation.ts";
import type {
  OptionalMessage,
  RefusalCause,
  ServerConnection,
  ServerHandler,
  ServerSession,
  StopCause,
} from "./types.ts";

/** Ended operations whose late control packets are known to be late. */
const recentOperations = 256;

/** What a session needs of its connection. */
export interface SessionHost {
  readonly connection: ServerConnection;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly limits: ServerLimits;
  readonly handler: ServerHandler;
  /** This server takes no new operations. */
  readonly closing: boolean;
  takesMore(): boolean;
  overflows(): boolean;
  /** A function of the application threw. */
  failed(error: unknown): void;
  operationStarted(): void;
  operationEnded(): void;
  /** Something in a packet was wrong; it was ignored. */
  misbehaved(session: Session, detail: string): void;
  /** The session is over, in order. */
  sessionEnded(session: Session): void;
}

export interface SessionTerms {
  readonly id: number;
  readonly profileId: number;
  readonly priorityClass: number;
  readonly flags: number;
  readonly defaultDeadlineMs: number;
  readonly clientTag: bigint;
}

/** One open session: finds the operation that a packet is about, and lets nothing in it harm anything else. */
export class Session implements ServerSession, OperationHost {
  readonly id: number;
  readonly profileId: number;
  readonly priorityClass: number;
  readonly flags: number;
  readonly defaultDeadlineMs: number;
  readonly clientTag: bigint;
  readonly #host: SessionHost;
  data: unknown;
  traceContext: TraceContext | undefined;
  errors = 0;
  /** The token that resumes it. */
  resumeToken: Uint8Array | undefined;
  paused = false;
  #ended = false;
  #cancelPause: (() => void) | undefined;
  #closing: { readonly at: number; readonly lastOperationId: bigint } | undefined;
  readonly #byFrame = new Map<number, Operation>();
  readonly #recent = new RecentIds<bigint>(recentOperations);
  readonly #recentFrames = new RecentIds<number>(recentOperations);
  #reservations: Map<bigint, { readonly frameId: number; readonly limit: TimeLimit }> | undefined;
  #superseding: Map<bigint, Supersede> | undefined;

  constructor(host: SessionHost, terms: SessionTerms) {
    this.#host = host;
    this.id = terms.id;
    this.profileId = terms.profileId;
    this.priorityClass = terms.priorityClass;
    this.flags = terms.flags;
    this.defaultDeadlineMs = terms.defaultDeadlineMs;
    this.clientTag = terms.clientTag;
  }

  get session(): ServerSession {
    return this;
  }

  get connection(): ServerConnection {
    return this.#host.connection;
  }

  get outbox(): Outbox {
    return this.#host.outbox;
  }

  get clock(): Clock {
    return this.#host.clock;
  }

  failed(error: unknown): void {
    this.#host.failed(error);
  }

  takesMore(): boolean {
    return this.#host.takesMore();
  }

  overflows(): boolean {
    return this.#host.overflows();
  }

  sendTraceContext(context: TraceContext): void {
    this.#write(traceContextPacket({ sessionId: this.id, frameId: 0 }, context));
  }

  sendBackpressure(pressure: Backpressure): void {
    this.#write(backpressurePacket(this.#target, pressure));
  }

  sendCredit(window: number): void {
    this.#write(creditPacket(this.#target, window));
  }

  get #target() {
    return { sessionId: this.id, frameId: 0, operationId: 0n };
  }

  #write(draft: AnyPacketDraft): void {
    if (!this.#ended && !this.#host.overflows()) this.#host.outbox.write(draft);
  }

  /** Takes a packet of this session. */
  receive(packet: AnyPacket): void {
    switch (packet.type) {
      case "FRAME_SUBMIT":
        this.#submit(packet);
        return;
      case "CANCEL":
      case "ABORT": {
        const cause: StopCause = {
          kind: packet.type === "CANCEL" ? "cancel" : "abort",
          reason: packet.metadata.reasonCode,
          diagnostic: decodeDiagnostic(packet.body),
        };
        this.#apply(packet.frameId, packet.metadata.operationId, packet.type, (operation) => operation.stop(cause));
        return;
      }
      case "FRAME_CANCEL": {
        const operation = this.#byFrame.get(packet.frameId);
        if (operation !== undefined) operation.stop({ kind: "frame-cancel", reason: 0, diagnostic: "" });
        else if (!this.#recentFrames.has(packet.frameId)) this.#misbehaved("FRAME_CANCEL for an unknown frame");
        return;
      }
      case "PRIORITY_UPDATE": {
        const update = readPriority(packet);
        this.#apply(packet.frameId, packet.metadata.operationId, packet.type, (operation) =>
          operation.takePriority(update),
        );
        return;
      }
      case "DEADLINE":
        this.#deadline(packet);
        return;
      case "EXPIRE_AT": {
        const limit = readTimeLimit(packet);
        this.#apply(packet.frameId, packet.metadata.operationId, packet.type, (operation) =>
          operation.takeExpiry(limit),
        );
        return;
      }
      case "SUPERSEDE":
        this.#supersede(packet);
        return;
      case "BUDGET_UPDATE": {
        const budget = readBudget(packet);
        this.#apply(packet.frameId, packet.metadata.operationId, packet.type, (operation) =>
          operation.takeBudget(budget),
        );
        return;
      }
      case "TRACE_CONTEXT":
        this.#takeTraceContext(packet);
        return;
      case "BACKPRESSURE":
      case "CREDIT_UPDATE":
        this.#pressure(packet);
        return;
      case "FLOW_UPDATE":
        this.#flow(packet);
        return;
      case "SESSION_CLOSE":
        this.#close(packet);
        return;
      case "PING":
        this.#write({ type: "PONG", sessionId: this.id });
        return;
      case "SESSION_PATCH":
        this.#write({
          type: "SESSION_PATCH_ACK",
          sessionId: this.id,
          metadata: {
            status: SessionPatchAckStatus.rejected,
            rejectReason: SessionPatchRejectReason.unsupportedField,
            rejectedMask: packet.metadata.patchMask,
            effectiveProfileId: this.profileId,
          },
        });
        return;
      case "SESSION_MIGRATE":
        this.#write({ type: "SESSION_MIGRATE_ACK", sessionId: this.id, metadata: { acceptCode: 1 } });
        return;
      case "PONG":
      case "ERROR":
      case "ERROR_RECOVERABLE":
      case "RETRY_AFTER":
      case "PROGRESS":
      case "PARTIAL_RESULT":
      case "RESULT_DROP_REASON":
      case "RESULT_HINT":
        return;
      case "CAPABILITY_NEGOTIATION":
      case "DEGRADE_PROFILE":
      case "ROUTE_HINT":
      case "EXECUTION_HINT":
      case "CACHE_PUT":
      case "CACHE_ACK":
      case "CACHE_INVALIDATE":
      case "CACHE_REFERENCE":
      case "CACHE_MISS":
      case "OBJECT_DECLARE":
      case "OBJECT_REF":
      case "OBJECT_RELEASE":
      case "OBJECT_PATCH":
      case "OBJECT_DELTA":
        this.#optional(packet);
        return;
      case "CLIENT_HELLO":
      case "SERVER_HELLO_ACK":
      case "SESSION_PATCH_ACK":
      case "CLOSE":
      case "SESSION_OPEN":
      case "SESSION_OPEN_ACK":
      case "SESSION_CLOSE_ACK":
      case "RESULT_PUSH":
      case "RESULT_DROP":
      case "TRANSPORT_PROBE":
      case "TRANSPORT_PROBE_ACK":
      case "SESSION_MIGRATE_ACK":
        this.#misbehaved(`${packet.type} has no place in a session`);
        return;
    }
  }

  /** A submit that could not be read, but whose operation is known: it is answered, so that nobody waits for it. */
  refuseUnreadable(frameId: number, operationId: bigint, problem: string): void {
    if (this.#byFrame.has(frameId) || this.#findById(operationId) !== undefined) return;
    const diagnostic = new TextEncoder().encode(problem);
    this.#write({
      type: "RESULT_DROP_REASON",
      sessionId: this.id,
      frameId,
      metadata: {
        operationId,
        resultSequence: 1n,
        dropReasonCode: DropReason.capabilityMismatch,
        sourceRole: 2,
        flags: 1,
      },
      body: diagnostic,
    });
    this.#recent.add(operationId);
    this.#recentFrames.add(frameId);
  }

  #submit(packet: Packet<"FRAME_SUBMIT">): void {
    const { frameId } = packet;
    const { operationId } = packet.metadata;
    if (frameId === 0) {
      this.#misbehaved("FRAME_SUBMIT without a frame id");
      return;
    }
    if (this.#byFrame.has(frameId)) {
      this.#misbehaved("FRAME_SUBMIT with the frame id of a live operation");
      return;
    }
    const operation = new Operation(this, packet);
    const cause = this.#refusal(operationId);
    if (cause !== undefined) {
      this.#refuse(operation, cause);
      return;
    }
    const reserved = this.#reservations?.get(operationId);
    if (reserved !== undefined) {
      this.#reservations?.delete(operationId);
      if (reserved.frameId === frameId) operation.deadline = reserved.limit;
      else this.#misbehaved("FRAME_SUBMIT with another frame id than its DEADLINE");
    }
    const supersede = this.#superseding?.get(operationId);
    this.#superseding?.delete(operationId);
    operation.supersedes = supersede?.oldOperationId;
    this.#byFrame.set(frameId, operation);
    this.#host.operationStarted();
    try {
      operation.listener = this.#host.handler.operation(operation);
    } catch (error) {
      operation.drop(DropReason.capabilityMismatch, "internal error");
      this.#host.failed(error);
    }
    if (supersede !== undefined) this.#findById(supersede.oldOperationId)?.stop({ kind: "superseded", supersede });
    operation.watchTime();
  }

  #refusal(operationId: bigint): RefusalCause | undefined {
    if (this.#host.closing || this.#closing !== undefined) return "closing";
    if (this.#recent.has(operationId) || this.#findById(operationId) !== undefined) return "duplicate-operation";
    if (this.#byFrame.size >= this.#host.limits.operationsPerSession) return "too-many-operations";
    return undefined;
  }

  #refuse(operation: Operation, cause: RefusalCause): void {
    if (cause === "duplicate-operation") this.#misbehaved("FRAME_SUBMIT with an operation id that is in use");
    try {
      this.#host.handler.refused?.(operation, cause);
    } catch (error) {
      this.#host.failed(error);
    }
    switch (cause) {
      case "closing":
        operation.drop(DropReason.transportClosed, "closing");
        return;
      case "duplicate-operation":
        operation.drop(DropReason.capabilityMismatch, "the operation id is in use");
        return;
      case "too-many-operations":
        operation.drop(DropReason.backpressure, "too many operations in flight", { retryable: true });
        return;
    }
  }

  ended(operation: Operation): void {
    if (this.#byFrame.get(operation.frameId) !== operation) return;
    this.#byFrame.delete(operation.frameId);
    this.#recent.add(operation.id);
    this.#recentFrames.add(operation.frameId);
    this.#host.operationEnded();
    if (this.#closing !== undefined && this.#byFrame.size === 0) this.#acknowledgeClose(this.#closing.lastOperationId);
  }

  #findById(id: bigint): Operation | undefined {
    for (const operation of this.#byFrame.values()) if (operation.id === id) return operation;
    return undefined;
  }

  /** Finds whom a control packet is about. Late ones are nothing; unknown ones and wrong pairs are counted. */
  #apply(frameId: number, operationId: bigint, type: string, act: (operation: Operation) => void): void {
    if (operationId === 0n) {
      for (const operation of [...this.#byFrame.values()]) act(operation);
      return;
    }
    const operation = this.#byFrame.get(frameId);
    if (operation?.id === operationId) act(operation);
    else if (operation === undefined && this.#recent.has(operationId)) return;
    else this.#misbehaved(`${type} for an unknown operation`);
  }

  #deadline(packet: Packet<"DEADLINE">): void {
    const { operationId } = packet.metadata;
    const limit = readTimeLimit(packet);
    const known = operationId === 0n || this.#byFrame.has(packet.frameId) || this.#recent.has(operationId);
    if (known || packet.frameId === 0) {
      this.#apply(packet.frameId, operationId, packet.type, (operation) => operation.takeDeadline(limit));
      return;
    }
    this.#reservations ??= new Map();
    const now = this.clock.now();
    for (const [id, reserved] of this.#reservations) if (reserved.limit.unixMs <= now) this.#reservations.delete(id);
    if (limit.unixMs <= now) this.#misbehaved("DEADLINE before its submit, in the past");
    else if (this.#reservations.size >= this.#host.limits.operationsPerSession) {
      this.#misbehaved("DEADLINE for too many operations that were not submitted");
    } else this.#reservations.set(operationId, { frameId: packet.frameId, limit });
  }

  #supersede(packet: Packet<"SUPERSEDE">): void {
    const supersede = readSupersede(packet);
    this.#apply(packet.frameId, supersede.oldOperationId, packet.type, (old) => {
      if (supersede.abortOld || this.#findById(supersede.newOperationId) !== undefined) {
        old.stop({ kind: "superseded", supersede });
        if (supersede.abortOld) return;
      }
    });
    if (this.#findById(supersede.oldOperationId) === undefined && !supersede.abortOld) return;
    if (supersede.newOperationId === 0n || this.#recent.has(supersede.newOperationId)) return;
    this.#superseding ??= new Map();
    if (this.#superseding.size < this.#host.limits.operationsPerSession) {
      this.#superseding.set(supersede.newOperationId, supersede);
    }
  }

  #takeTraceContext(packet: Packet<"TRACE_CONTEXT">): void {
    const context = readTraceContext(packet);
    if (packet.frameId === 0) this.traceContext = context;
    else {
      const operation = this.#byFrame.get(packet.frameId);
      if (operation !== undefined) operation.takeTraceContext(context);
      else if (!this.#recentFrames.has(packet.frameId)) this.#misbehaved("TRACE_CONTEXT for an unknown frame");
    }
  }

  #pressure(packet: Packet<"BACKPRESSURE" | "CREDIT_UPDATE">): void {
    const { scopeId, flags, pressureLevel, creditWindow, retryAfterMs } = packet.metadata;
    const operation = (flags & 2) !== 0 || packet.frameId !== 0 ? this.#findById(scopeId) : undefined;
    if (operation !== undefined) {
      if (packet.type === "CREDIT_UPDATE") operation.takeCredit(creditWindow);
      else operation.takeBackpressure(readBackpressure(packet as Packet<"BACKPRESSURE">));
      return;
    }
    if ((flags & 2) !== 0) return;
    this.#pause(packet.type === "BACKPRESSURE" && pressureLevel === BackpressureLevel.paused, retryAfterMs);
    if (packet.type === "CREDIT_UPDATE") return;
    const pressure = readBackpressure(packet as Packet<"BACKPRESSURE">);
    for (const each of this.#byFrame.values()) each.listener?.backpressure?.(pressure);
  }

  #flow(packet: Packet<"FLOW_UPDATE">): void {
    const { scopeKind, updateReason, operationId, operationCredit, retryAfterMs } = packet.metadata;
    if (scopeKind === FlowScopeKind.operation) {
      const operation = this.#findById(operationId);
      if (updateReason === FlowUpdateReason.pause) {
        operation?.takeBackpressure({ level: BackpressureLevel.paused, retryAfterMs });
      } else if (operationCredit !== 0) operation?.takeCredit(BigInt(operationCredit));
      else if (updateReason === FlowUpdateReason.resume) operation?.takeBackpressure({ level: BackpressureLevel.none });
      operation?.resume();
    } else if (updateReason === FlowUpdateReason.pause) this.#pause(true, retryAfterMs);
    else if (updateReason === FlowUpdateReason.resume || updateReason === FlowUpdateReason.grant) this.#pause(false, 0);
  }

  #pause(paused: boolean, retryAfterMs: number): void {
    this.paused = paused;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    if (!paused) this.resume();
    else if (retryAfterMs > 0) this.#cancelPause = this.clock.after(retryAfterMs, () => this.#pause(false, 0));
  }

  /** The connection takes bytes again, or the peer ended its pause. */
  resume(): void {
    for (const operation of [...this.#byFrame.values()]) operation.resume();
  }

  #close(packet: Packet<"SESSION_CLOSE">): void {
    if (this.#closing !== undefined) {
      this.#misbehaved("SESSION_CLOSE twice");
      return;
    }
    const { inFlightPolicy, drainTimeoutMs, lastOperationId } = packet.metadata;
    const drainMs = inFlightPolicy === InFlightPolicy.drain ? Math.min(drainTimeoutMs, this.#host.limits.drainMs) : 0;
    this.#closing = { at: this.clock.now() + drainMs, lastOperationId };
    if (this.#byFrame.size === 0) this.#acknowledgeClose(lastOperationId);
    else if (drainMs === 0) this.stopAll({ kind: "session-closed" });
    else this.clock.after(drainMs, () => this.stopAll({ kind: "session-closed" }));
  }

  #acknowledgeClose(lastOperationId: bigint): void {
    this.#write({
      type: "SESSION_CLOSE_ACK",
      sessionId: this.id,
      metadata: { closeStatus: SessionCloseStatus.closed, lastOperationId },
    });
    this.#ended = true;
    this.#cancelPause?.();
    this.#host.sessionEnded(this);
  }

  stopAll(cause: StopCause): void {
    for (const operation of [...this.#byFrame.values()]) operation.stop(cause);
  }

  /** The connection is gone. */
  lose(): void {
    this.#ended = true;
    this.#cancelPause?.();
    this.stopAll({ kind: "connection-lost" });
  }

  #optional(packet: OptionalPacket): void {
    const { handler } = this.#host;
    const message = packet as unknown as OptionalMessage;
    const reply = handler.optional?.(this, message);
    if (reply !== undefined) {
      this.#write({ ...reply, sessionId: this.id } as AnyPacketDraft);
    } else if (handler.optional === undefined && packet.type === "CACHE_REFERENCE") {
      const { namespace, profileId, keyHi, keyLo } = packet.metadata;
      this.#write({
        type: "CACHE_MISS",
        sessionId: this.id,
        frameId: packet.frameId,
        metadata: { namespace, profileId, keyHi, keyLo, missReason: CacheMissReason.notFound },
      });
    }
  }

  #misbehaved(detail: string): void {
    this.errors += 1;
    this.#host.misbehaved(this, detail);
  }
}

type OptionalPacket = Extract<AnyPacket, { type: OptionalMessageName }>;
