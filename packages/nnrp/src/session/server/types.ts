import type { TypedPayload } from "../../codec/typed-payload.ts";
import type { NnrpWireError } from "../../codec/wire-error.ts";
import type { Carrier, CarrierInfo } from "../carrier.ts";
import type { Clock } from "../clock.ts";
import type {
  Backpressure,
  Budget,
  OptionalMessageName,
  PriorityUpdate,
  Progress,
  RecoverableError,
  RetryAfter,
  Supersede,
  TimeLimit,
  TraceContext,
} from "../controls.ts";
import type { ServerLimits } from "../limits.ts";

/** A connection, as an application sees it. */
export interface ServerConnection {
  readonly carrier: CarrierInfo;
  /** Unique in this server, for logs. */
  readonly id: number;
  /** The hello's authentication block, or undefined. Peers other than this library never send one. */
  readonly authBlock: Uint8Array | undefined;
  /** Sends what is buffered and ends the connection; live operations hear `connection-lost`. */
  close(): void;
}

/** A SESSION_OPEN that waits for a decision. */
export interface SessionRequest {
  readonly connection: ServerConnection;
  readonly profileId: number;
  readonly schemaId: number;
  readonly schemaVersion: number;
  /** `SessionPriorityClass`. */
  readonly priorityClass: number;
  /** Bits of `SessionFlags`. */
  readonly flags: number;
  /** Informational, milliseconds. */
  readonly defaultDeadlineMs: number;
  readonly maxInFlight: number;
  /** Chosen by the client for its own use. */
  readonly clientTag: bigint;
  /** The open's authentication block, or undefined. Peers other than this library never send one. */
  readonly authBlock: Uint8Array | undefined;
  /** Set when this resumes a session that lost its connection: what the application had left in `ServerSession.data`. */
  readonly resumed: { readonly data: unknown } | undefined;
}

/** Accepts a session, or refuses it with a code (`SessionErrorCode`) and a text that the peer shows. */
export type SessionDecision =
  | { readonly accept: true; readonly data?: unknown }
  | { readonly accept: false; readonly code: number; readonly reason: string; readonly retryLater?: boolean };

/** An open session. */
export interface ServerSession {
  readonly connection: ServerConnection;
  /** Unique in its connection. */
  readonly id: number;
  readonly profileId: number;
  /** `SessionPriorityClass`. */
  readonly priorityClass: number;
  /** Bits of `SessionFlags`. */
  readonly flags: number;
  readonly defaultDeadlineMs: number;
  readonly clientTag: bigint;
  /** The default for operations without a context of their own: the peer's last TRACE_CONTEXT with frame 0. */
  readonly traceContext: TraceContext | undefined;
  /** For the application. Survives resuming. */
  data: unknown;
  /** Sends TRACE_CONTEXT with frame 0. */
  sendTraceContext(context: TraceContext): void;
  /** Asks the peer for fewer submits. */
  sendBackpressure(pressure: Backpressure): void;
  /** Grants the peer a number of submits at once; ends a pause. */
  sendCredit(window: number): void;
}

/** Why an operation has to stop. */
export type StopCause =
  | {
      readonly kind: "cancel" | "abort" | "frame-cancel";
      /** `ReasonCode`; 0 for FRAME_CANCEL. */
      readonly reason: number;
      readonly diagnostic: string;
    }
  /** DEADLINE or EXPIRE_AT has passed. */
  | { readonly kind: "deadline" | "expired" }
  | { readonly kind: "superseded"; readonly supersede: Supersede }
  /** The peer closed the session, or this server is closing. */
  | { readonly kind: "session-closed" | "server-closing" }
  /** Nobody is there any more. Nothing can be sent. */
  | { readonly kind: "connection-lost" };

/**
 * What an operation's owner wants to hear. Every call is synchronous, and none comes after the operation's end, except
 * those it caused itself.
 */
export interface OperationListener {
  /**
   * The operation has to stop. It may still end it here in its own words (`drop`, `result`); if it does not, the
   * operation is ended after this call by RESULT_DROP_REASON with the code that belongs to the cause. Called once.
   */
  stop?(cause: StopCause): void;
  /** `writable` is true again. */
  drain?(): void;
  priority?(update: PriorityUpdate): void;
  /** DEADLINE: the server will stop the operation then by itself. */
  deadline?(limit: TimeLimit): void;
  /** EXPIRE_AT: the server will stop the operation then by itself if one of its flags is set. */
  expireAt?(limit: TimeLimit): void;
  budget?(budget: Budget): void;
  traceContext?(context: TraceContext): void;
  /** CREDIT_UPDATE of the peer for this operation: so many more partials are welcome. `writable` takes it into account. */
  credit?(window: bigint): void;
  /** BACKPRESSURE of the peer for this operation or its session. `writable` is false while it is paused. */
  backpressure?(pressure: Backpressure): void;
}

export interface PartialOptions {
  /** Default: the same as the sequence, which the operation counts from 1. */
  readonly deltaSequence?: bigint;
  /** The last partial before the end. Default false. */
  readonly final?: boolean;
}

export interface ResultOptions {
  /** HTTP-like detail, 0 to 65535; never decides how the operation ended. Default 200. */
  readonly status?: number;
  /** `ResultClass`. Default complete. */
  readonly resultClass?: number;
  /** Bits: 1 stale, 2 fallback, 4 partial. Default 0. */
  readonly flags?: number;
  /** Milliseconds; larger ones are sent as 65535. Default 0. */
  readonly inferenceMs?: number;
  readonly queueMs?: number;
  readonly totalMs?: number;
}

/** The body of a result. */
export type ResultBody =
  /** One `structured_event` payload: profile 0, schema 0/0, snapshot. Text is sent as UTF-8. */
  | { readonly event: Uint8Array | string }
  /** Any payloads. */
  | { readonly payloads: readonly TypedPayload[] }
  /** Bytes as they are, under a payload kind bit; for peers that do not lay bodies out. */
  | { readonly raw: Uint8Array; readonly payloadKinds: number; readonly payloadCount: number }
  /** An empty success. */
  | undefined;

/**
 * One submitted operation. It ends exactly once: by `result`, by `drop`, or by the server after `stop`. After that,
 * every method does nothing and answers false.
 */
export interface ServerOperation {
  readonly connection: ServerConnection;
  readonly session: ServerSession;
  readonly id: bigint;
  readonly frameId: number;
  /** The header's trace id, 0 when there is none. */
  readonly traceId: bigint;
  /** The operation's own TRACE_CONTEXT, or the session's. */
  readonly traceContext: TraceContext | undefined;
  /** 0 when there is none. */
  readonly latencyBudgetMs: number;
  /** Bits of `PayloadKind`, as the submit's metadata says. */
  readonly payloadKinds: number;
  /** The whole body: a view into what was received. */
  readonly body: Uint8Array;
  /** The payloads of a well laid out body; undefined when it is not, and `bodyError` says why. */
  readonly payloads: readonly TypedPayload[] | undefined;
  readonly bodyError: NnrpWireError | undefined;
  /** The deadline in force, also one that came before the submit. */
  readonly deadline: TimeLimit | undefined;
  readonly expireAt: TimeLimit | undefined;
  /** The operation that this one replaces, when SUPERSEDE named it before its submit. */
  readonly supersedes: bigint | undefined;
  /** The terminal was sent, or nobody is there to take one. */
  readonly finished: boolean;
  /**
   * More may be written. False while too many bytes wait to be sent on this connection, and while the peer paused the
   * operation or its credit is used up; `drain` tells the end of it. Writing on regardless closes the connection once
   * `bufferedBytes` are waiting.
   */
  readonly writable: boolean;
  /** PARTIAL_RESULT with a bare body, which must not be empty. Answers `writable`. */
  partial(body: Uint8Array | string, options?: PartialOptions): boolean;
  /** PROGRESS. Answers `writable`. */
  progress(progress: Progress): boolean;
  retryAfter(retry: RetryAfter): boolean;
  recoverableError(error: RecoverableError): boolean;
  /** TRACE_CONTEXT with this operation's frame. */
  sendTraceContext(context: TraceContext): boolean;
  /** RESULT_PUSH: the end. */
  result(body: ResultBody, options?: ResultOptions): boolean;
  /** RESULT_DROP_REASON (`DropReason`): the end without a result. `diagnostic` is cut at 1024 bytes. */
  drop(reason: number, diagnostic?: string, options?: { readonly retryable?: boolean }): boolean;
}

/** Why a submit was not accepted. */
export type RefusalCause =
  /** `operationsPerSession` are live. */
  | "too-many-operations"
  /** The operation id is in use, or was used a short time ago. */
  | "duplicate-operation"
  /** The server or the session is closing. */
  | "closing";

/** The application behind a server. */
export interface ServerHandler {
  /** Decides about a session; may take its time. Without it every session is accepted. An exception refuses. */
  open?(request: SessionRequest): SessionDecision | Promise<SessionDecision>;
  /** A session is open. */
  opened?(session: ServerSession): void;
  /** A session ended: closed by the peer, lost with its connection (`resumable` when it may come back). */
  closed?(session: ServerSession, resumable: boolean): void;
  /** An operation was submitted. What is returned hears what happens to it. An exception drops it. */
  operation(operation: ServerOperation): OperationListener | undefined;
  /**
   * A submit was not accepted; the application may answer with `result` or `drop`, here and now. If it does not, it is
   * answered by RESULT_DROP_REASON (backpressure, capability_mismatch, transport_closed).
   */
  refused?(operation: ServerOperation, cause: RefusalCause): void;
  /**
   * CAPABILITY_NEGOTIATION, ROUTE_HINT and other optional messages. Without it, CACHE_REFERENCE is answered by
   * CACHE_MISS and the rest is ignored.
   */
  optional?(session: ServerSession, message: OptionalMessage): OptionalReply | undefined;
  /**
   * A function of the application threw; whatever it was about went on as if it had returned nothing. Without this, the
   * error is thrown again where nothing catches it.
   */
  failed?(error: unknown): void;
  /** Something noteworthy for a log. No payload, no credential is in it. */
  log?(event: ServerLogEvent): void;
}

/** An optional message, its metadata as the codec's record of that name, and its body. */
export interface OptionalMessage {
  readonly type: OptionalMessageName;
  readonly frameId: number;
  readonly metadata: Readonly<Record<string, number | bigint>>;
  readonly body: Uint8Array;
}

export interface OptionalReply {
  readonly type: OptionalMessageName;
  readonly frameId?: number;
  readonly metadata: Readonly<Record<string, number | bigint>>;
  readonly body?: Uint8Array;
}

export interface ServerLogEvent {
  readonly event: "connection-opened" | "connection-closed" | "connection-refused" | "protocol-error" | "probe";
  readonly connectionId: number;
  readonly carrier: string;
  readonly remote: string;
  /** What was wrong, without content. */
  readonly detail?: string;
}

export interface ServerOptions {
  readonly limits?: Partial<ServerLimits>;
  /** Default: the platform's. */
  readonly clock?: Clock;
  /** Accept authentication blocks in hello and open (an agreement of this library with itself). Default false. */
  readonly acceptAuthBlocks?: boolean;
}

/** A server without sockets: carriers are handed to it. */
export interface NnrpServer {
  readonly limits: ServerLimits;
  readonly connections: number;
  readonly sessions: number;
  readonly operations: number;
  /** Serves one carrier until its end. */
  accept(carrier: Carrier): void;
  /**
   * Takes no new connection and no new operation, waits for the live ones for at most `drainMs` (default 0), drops the
   * rest with `transport_closed`, sends what is buffered, and ends every carrier.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}
