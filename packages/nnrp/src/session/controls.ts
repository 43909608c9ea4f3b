/** What both ends tell each other about a session or an operation. Times are Unix milliseconds. */

/** TRACE_CONTEXT. Trace and span id are never 0. */
export interface TraceContext {
  readonly traceId: bigint;
  readonly spanId: bigint;
  readonly parentSpanId?: bigint;
  /** `StageCode`. Default 0. */
  readonly stage?: number;
  readonly sampled?: boolean;
  /** The traced work failed. */
  readonly error?: boolean;
  /** Opaque attributes; never to be logged or passed on. Default none. */
  readonly attributes?: Uint8Array;
}

/** PROGRESS. */
export interface Progress {
  /** `StageCode`; 0x100 to 0x7fff belong to profiles. */
  readonly stage: number;
  /** 0 to 100, in hundredths; left out when unknown. */
  readonly percent?: number;
  /** Default empty. */
  readonly body?: Uint8Array;
}

/** RETRY_AFTER: come again later. Does not end an operation. */
export interface RetryAfter {
  readonly retryAfterMs: number;
  /** Add a random part of this. Default 0. */
  readonly jitterMs?: number;
  /** `ReasonCode`. Default 0. */
  readonly reason?: number;
  /** UTF-8 text for people. Default empty. */
  readonly diagnostic?: string;
}

/** ERROR_RECOVERABLE: something failed and goes on. Does not end an operation. */
export interface RecoverableError {
  /** `ErrorCode` or `SessionErrorCode`. */
  readonly code: number;
  /** What helps: a `ReasonCode`. Default 0. */
  readonly recoveryAction?: number;
  /** Left out when it can be tried again now. */
  readonly retryAfterMs?: number;
  readonly diagnostic?: string;
}

/** PRIORITY_UPDATE. */
export interface PriorityUpdate {
  /** `SessionPriorityClass`; peers may send other numbers. */
  readonly priorityClass: number;
  /** -32768 to 32767, within the class. Default 0. */
  readonly delta?: number;
}

/** DEADLINE and EXPIRE_AT. */
export interface TimeLimit {
  readonly unixMs: number;
  /** The result is worth nothing after that time. Default false. */
  readonly discardStale?: boolean;
  /** Tell it by RESULT_DROP_REASON. Default false. */
  readonly emitDropReason?: boolean;
}

/** BUDGET_UPDATE. 0 leaves a budget as it is. */
export interface Budget {
  readonly computeUnits?: bigint;
  readonly memoryBytes?: bigint;
  readonly bandwidthBytes?: bigint;
  /** For text: output tokens. */
  readonly tokens?: number;
  /** Added to the present budget instead of replacing it. Default false. */
  readonly increment?: boolean;
}

/** BACKPRESSURE: the sender of this wants less. */
export interface Backpressure {
  /** `BackpressureLevel`: 1 soft, 2 hard, 3 paused. */
  readonly level: number;
  /** `PressureReason`. Default 0. */
  readonly reason?: number;
  /** After this time sending may go on without another word. Default 0: none. */
  readonly retryAfterMs?: number;
}

/** SUPERSEDE, as the peer sent it. */
export interface Supersede {
  readonly oldOperationId: bigint;
  readonly newOperationId: bigint;
  /** `DropReason` for the old one. */
  readonly reason: number;
  /** Abort the old one at once. */
  readonly abortOld: boolean;
  readonly diagnostic: string;
}

/** A packet of the optional kinds (capabilities, routes, caches, objects), for applications that know them. */
export type OptionalMessageName =
  | "CAPABILITY_NEGOTIATION"
  | "DEGRADE_PROFILE"
  | "ROUTE_HINT"
  | "EXECUTION_HINT"
  | "CACHE_PUT"
  | "CACHE_ACK"
  | "CACHE_INVALIDATE"
  | "CACHE_REFERENCE"
  | "CACHE_MISS"
  | "OBJECT_DECLARE"
  | "OBJECT_REF"
  | "OBJECT_RELEASE"
  | "OBJECT_PATCH"
  | "OBJECT_DELTA";
