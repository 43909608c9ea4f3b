import type { Packet, PacketDraft } from "../codec/packet-types.ts";
import type {
  Backpressure,
  Budget,
  PriorityUpdate,
  Progress,
  RecoverableError,
  RetryAfter,
  Supersede,
  TimeLimit,
  TraceContext,
} from "./controls.ts";
import { decodeDiagnostic, encodeDiagnostic } from "./text.ts";

/** Between the packets of control messages and what applications read and write. */

/** Whom a packet is about: frame 0 and operation 0 stand for the session. */
export interface Target {
  readonly sessionId: number;
  readonly frameId: number;
  readonly operationId: bigint;
}

const millis = (value: bigint): number =>
  Number(value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : value);
const withBody = (body: Uint8Array | undefined) => (body === undefined ? {} : { body });

export const readTraceContext = ({ metadata, body }: Packet<"TRACE_CONTEXT">): TraceContext => ({
  traceId: metadata.traceId,
  spanId: metadata.spanId,
  parentSpanId: metadata.parentSpanId,
  stage: metadata.stageCode,
  sampled: (metadata.flags & 1) !== 0,
  error: (metadata.flags & 2) !== 0,
  attributes: body,
});

export const traceContextPacket = (
  { sessionId, frameId }: Omit<Target, "operationId">,
  context: TraceContext,
): PacketDraft<"TRACE_CONTEXT"> => ({
  type: "TRACE_CONTEXT",
  sessionId,
  frameId,
  metadata: {
    traceId: context.traceId,
    spanId: context.spanId,
    parentSpanId: context.parentSpanId ?? 0n,
    stageCode: context.stage ?? 0,
    flags: (context.sampled ? 1 : 0) | (context.error ? 2 : 0),
  },
  ...withBody(context.attributes),
});

export const readProgress = ({ metadata, body }: Packet<"PROGRESS">): Progress => ({
  stage: metadata.stageCode,
  ...(metadata.percentX100 === 0xffff ? {} : { percent: metadata.percentX100 / 100 }),
  body,
});

export const progressPacket = (to: Target, sequence: number, progress: Progress): PacketDraft<"PROGRESS"> => ({
  type: "PROGRESS",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    operationId: to.operationId,
    progressSequence: BigInt(sequence),
    stageCode: progress.stage,
    percentX100: progress.percent === undefined ? 0xffff : Math.round(progress.percent * 100),
  },
  ...withBody(progress.body),
});

export const readRetryAfter = ({ metadata, body }: Packet<"RETRY_AFTER">): RetryAfter => ({
  retryAfterMs: metadata.retryAfterMs,
  jitterMs: metadata.jitterMs,
  reason: metadata.reasonCode,
  diagnostic: decodeDiagnostic(body),
});

/** `flags` 2: it is about an operation. */
export const retryAfterPacket = (
  to: Target,
  sequence: number,
  role: number,
  retry: RetryAfter,
): PacketDraft<"RETRY_AFTER"> => ({
  type: "RETRY_AFTER",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    scopeId: to.operationId,
    controlSequence: BigInt(sequence),
    retryAfterMs: retry.retryAfterMs,
    jitterMs: retry.jitterMs ?? 0,
    reasonCode: retry.reason ?? 0,
    sourceRole: role,
    flags: 2,
  },
  ...withBody(encodeDiagnostic(retry.diagnostic)),
});

export const readRecoverableError = ({ metadata, body }: Packet<"ERROR_RECOVERABLE">): RecoverableError => ({
  code: metadata.errorCode,
  recoveryAction: metadata.recoveryAction,
  ...((metadata.flags & 2) === 0 ? {} : { retryAfterMs: metadata.retryAfterMs }),
  diagnostic: decodeDiagnostic(body),
});

export const recoverableErrorPacket = (
  to: Target,
  role: number,
  error: RecoverableError,
): PacketDraft<"ERROR_RECOVERABLE"> => ({
  type: "ERROR_RECOVERABLE",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    errorCode: error.code,
    errorScope: 2,
    recoveryAction: error.recoveryAction ?? 0,
    sourceRole: role,
    flags: error.retryAfterMs === undefined ? 1 : 2,
    retryAfterMs: error.retryAfterMs ?? 0,
    relatedSessionId: to.sessionId,
    relatedFrameId: to.frameId,
  },
  ...withBody(encodeDiagnostic(error.diagnostic)),
});

export const readTimeLimit = ({ metadata }: Packet<"DEADLINE" | "EXPIRE_AT">): TimeLimit => ({
  unixMs: millis(metadata.deadlineUnixMs),
  discardStale: (metadata.flags & 1) !== 0,
  emitDropReason: (metadata.flags & 2) !== 0,
});

export const timeLimitPacket = <N extends "DEADLINE" | "EXPIRE_AT">(
  type: N,
  to: Target,
  sequence: number,
  limit: TimeLimit,
): PacketDraft<"DEADLINE" | "EXPIRE_AT"> => ({
  type,
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    operationId: to.operationId,
    controlSequence: BigInt(sequence),
    deadlineUnixMs: BigInt(Math.max(1, Math.trunc(limit.unixMs))),
    flags: (limit.discardStale ? 1 : 0) | (limit.emitDropReason ? 2 : 0),
  },
});

export const readPriority = ({ metadata }: Packet<"PRIORITY_UPDATE">): PriorityUpdate => ({
  priorityClass: metadata.priorityClass,
  delta: metadata.priorityDelta,
});

export const priorityPacket = (
  to: Target,
  sequence: number,
  update: PriorityUpdate,
): PacketDraft<"PRIORITY_UPDATE"> => ({
  type: "PRIORITY_UPDATE",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    operationId: to.operationId,
    controlSequence: BigInt(sequence),
    priorityClass: update.priorityClass,
    priorityDelta: update.delta ?? 0,
  },
});

export const readBudget = ({ metadata }: Packet<"BUDGET_UPDATE">): Budget => ({
  computeUnits: metadata.computeBudgetUnits,
  memoryBytes: metadata.memoryBudgetBytes,
  bandwidthBytes: metadata.bandwidthBudgetBytes,
  tokens: metadata.tokenBudget,
  increment: (metadata.flags & 2) !== 0,
});

export const budgetPacket = (to: Target, budget: Budget): PacketDraft<"BUDGET_UPDATE"> => ({
  type: "BUDGET_UPDATE",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    operationId: to.operationId,
    computeBudgetUnits: budget.computeUnits ?? 0n,
    memoryBudgetBytes: budget.memoryBytes ?? 0n,
    bandwidthBudgetBytes: budget.bandwidthBytes ?? 0n,
    tokenBudget: budget.tokens ?? 0,
    flags: budget.increment ? 2 : 1,
  },
});

export const readBackpressure = ({ metadata }: Packet<"BACKPRESSURE">): Backpressure => ({
  level: metadata.pressureLevel,
  reason: metadata.pressureReason,
  retryAfterMs: metadata.retryAfterMs,
});

/** About the operation (`flags` 2), or about the session when the target's operation is 0. */
export const backpressurePacket = (to: Target, pressure: Backpressure): PacketDraft<"BACKPRESSURE"> => ({
  type: "BACKPRESSURE",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    scopeId: to.operationId || BigInt(to.sessionId),
    pressureLevel: pressure.level,
    pressureReason: pressure.reason ?? 0,
    retryAfterMs: pressure.retryAfterMs ?? 0,
    flags: to.operationId === 0n ? 0 : 2,
  },
});

export const creditPacket = (to: Target, window: number): PacketDraft<"CREDIT_UPDATE"> => ({
  type: "CREDIT_UPDATE",
  sessionId: to.sessionId,
  frameId: to.frameId,
  metadata: {
    scopeId: to.operationId || BigInt(to.sessionId),
    creditWindow: BigInt(window),
    flags: to.operationId === 0n ? 0 : 2,
  },
});

export const readSupersede = ({ metadata, body }: Packet<"SUPERSEDE">): Supersede => ({
  oldOperationId: metadata.oldOperationId,
  newOperationId: metadata.newOperationId,
  reason: metadata.dropReasonCode,
  abortOld: (metadata.flags & 1) !== 0,
  diagnostic: decodeDiagnostic(body),
});
