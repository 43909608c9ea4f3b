import type { TypedPayload } from "../../codec/typed-payload.ts";
import type { CarrierInfo } from "../carrier.ts";
import type { Clock } from "../clock.ts";
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
import type { NnrpError } from "../errors.ts";
import type { ClientLimits } from "../limits.ts";

export interface ClientOptions {
  readonly limits?: Partial<ClientLimits>;
  /** Default: the platform's. */
  readonly clock?: Clock;
  /** Ends the attempt to connect. */
  readonly signal?: AbortSignal;
  /**
   * A credential in the hello. Only for servers that are known to take one: others end the connection.
   * Default none.
   */
  readonly authBlock?: Uint8Array;
}

/** Proof of a resumable session, good for one use within `windowMs` after the connection was lost. */
export interface ResumeTicket {
  readonly sessionId: number;
  readonly token: Uint8Array;
  readonly windowMs: number;
}

export interface SessionOptions {
  /** Default 2 (token), which is also right for `openai-compatible/1`: its payloads say profile 0, its sessions do not. */
  readonly profileId?: number;
  /** Default 0x1001. */
  readonly schemaId?: number;
  /** Default 3. */
  readonly schemaVersion?: number;
  /** Default balanced. */
  readonly priority?: "interactive" | "balanced" | "background";
  /** Informational. Default 500, 0 for none. */
  readonly defaultDeadlineMs?: number;
  /** Operations in flight, 1 to 65535. Default 4, the most that other implementations grant. */
  readonly maxInFlight?: number;
  /** Default 0: the server chooses. */
  readonly requestedSessionId?: number;
  readonly clientTag?: bigint;
  /** Ask for a resume ticket. Default false. */
  readonly allowResume?: boolean;
  /** Resume a session that lost its connection. Only its id comes back; operations do not. */
  readonly resume?: ResumeTicket;
  /** A credential; the same caution as with `ClientOptions.authBlock`. Default none. */
  readonly authBlock?: Uint8Array;
  readonly signal?: AbortSignal;
}

export interface ClientConnection {
  readonly carrier: CarrierInfo;
  /** The most that the server takes in a body, bytes. */
  readonly maxBodyBytes: number;
  /** The hello acknowledgement's `auth_status`; no values are registered, 0 is good. */
  readonly authStatus: number;
  readonly isClosed: boolean;
  /** Fulfilled at the end of the connection; undefined when this side closed it in order. */
  readonly closed: Promise<NnrpError | undefined>;
  /**
   * Opens a session. Opens are done one after another.
   *
   * @throws {NnrpError} `session-rejected`, `timeout`, `connection-closed`, `cancelled`.
   */
  openSession(options?: SessionOptions): Promise<ClientSession>;
  /** Closes every session (aborting what is live), then the carrier. Never rejects. */
  close(): Promise<void>;
  /** Ends at once. */
  destroy(): void;
}

export interface SubmitRequest {
  /** What is submitted: one `structured_event` (profile 0, schema 0/0, snapshot; text as UTF-8), or any payloads. */
  readonly body: { readonly event: Uint8Array | string } | { readonly payloads: readonly TypedPayload[] };
  /** Non-zero, unique in the session. Default: counted by the session. */
  readonly operationId?: bigint;
  /** Milliseconds, 0 to 65535. Default 0: none. */
  readonly latencyBudgetMs?: number;
  /** The header's trace id. Default 0. */
  readonly traceId?: bigint;
  /** Sent with the operation's frame right after the submit. */
  readonly traceContext?: TraceContext;
  /** DEADLINE, sent before the submit, so that it holds from the start. */
  readonly deadline?: TimeLimit;
  /** EXPIRE_AT, sent right after the submit. */
  readonly expireAt?: TimeLimit;
  /** PRIORITY_UPDATE, sent right after the submit. */
  readonly priority?: PriorityUpdate;
  /** SUPERSEDE of a live operation of this session, sent right before the submit. */
  readonly supersedes?: ClientOperation;
  /** Cancels the operation when it fires, also while it waits. */
  readonly signal?: AbortSignal;
  /**
   * Asks the server to send at most so many partials ahead of what was read (CREDIT_UPDATE, renewed while reading).
   * Servers of other implementations take note of it and go on. Default none.
   */
  readonly creditWindow?: number;
}

/** What happens to an operation, in order. The last one is `result`, `dropped` or `failed`; nothing comes after it. */
export type OperationEvent =
  | {
      readonly type: "partial";
      readonly body: Uint8Array;
      readonly sequence: bigint;
      readonly deltaSequence: bigint;
      readonly final: boolean;
    }
  | ({ readonly type: "progress" } & Progress)
  | ({ readonly type: "retry-after" } & RetryAfter)
  | ({ readonly type: "recoverable-error" } & RecoverableError)
  | ({ readonly type: "trace-context" } & TraceContext)
  | ({ readonly type: "backpressure" } & Backpressure)
  | OperationEnd;

export type OperationEnd =
  /** RESULT_PUSH. */
  | {
      readonly type: "result";
      /** HTTP-like detail; the payload says how it went. */
      readonly status: number;
      readonly resultClass: number;
      readonly flags: number;
      readonly inferenceMs: number;
      readonly queueMs: number;
      readonly totalMs: number;
      /** The whole body. */
      readonly body: Uint8Array;
      /** Undefined when the body is not laid out as the protocol says. */
      readonly payloads: readonly TypedPayload[] | undefined;
    }
  /** RESULT_DROP_REASON, RESULT_DROP (reason 0), or a SUPERSEDE of the peer. */
  | {
      readonly type: "dropped";
      /** `DropReason`, 0 when the peer gave none. */
      readonly reason: number;
      readonly diagnostic: string;
      readonly retryable: boolean;
    }
  /** The peer aborted it, its session or connection ended, or nothing came in time after a cancel. */
  | { readonly type: "failed"; readonly error: NnrpError };

/**
 * One submitted operation. Read its events by `for await`; or give `submit` a function, which is called with each
 * event as it arrives, without a queue.
 *
 * Leaving the loop early cancels the operation.
 */
export interface ClientOperation extends AsyncIterable<OperationEvent> {
  readonly session: ClientSession;
  readonly id: bigint;
  /** 0 while it waits to be sent. */
  readonly frameId: number;
  /** It waits because too many are in flight or the server asked for a pause. */
  readonly queued: boolean;
  /** How it ended. Never rejects. */
  readonly ended: Promise<OperationEnd>;
  readonly finished: boolean;
  /** CANCEL; one that waits ends at once. The end comes as an event. Repeated calls do nothing. `reason`: `ReasonCode`. */
  cancel(reason?: number): void;
  /** ABORT: cancel without courtesy. */
  abort(reason?: number): void;
  updatePriority(update: PriorityUpdate): void;
  setDeadline(limit: TimeLimit): void;
  setExpireAt(limit: TimeLimit): void;
  updateBudget(budget: Budget): void;
  sendTraceContext(context: TraceContext): void;
  /** BACKPRESSURE for this operation. */
  sendBackpressure(pressure: Backpressure): void;
  /** CREDIT_UPDATE for this operation: so many more partials are welcome. */
  sendCredit(window: number): void;
}

export interface ClientSession {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly maxInFlight: number;
  /** Informational. */
  readonly operationCredit: number;
  /** Set when the server granted resuming. */
  readonly resumeTicket: ResumeTicket | undefined;
  /** This session was resumed. */
  readonly resumed: boolean;
  /** `SessionPriorityClass` that the server accepted. */
  readonly priorityClass: number;
  readonly isClosed: boolean;
  /** Fulfilled at the end of the session; undefined when this side closed it in order. */
  readonly closed: Promise<NnrpError | undefined>;
  /** Operations sent and not yet ended. */
  readonly inFlight: number;
  /**
   * Submits an operation; it waits on this side while `maxInFlight` are in flight or the server asked for a pause.
   *
   * @throws {NnrpError} `session-closed`, `limit-reached` (too many wait, body too large), `invalid-argument`.
   */
  submit(request: SubmitRequest, onEvent?: (event: OperationEvent) => void): ClientOperation;
  /** TRACE_CONTEXT with frame 0: the default for later operations. */
  sendTraceContext(context: TraceContext): void;
  /**
   * Closes the session. `drain` (default): live operations may finish within `drainTimeoutMs` (default 0: at once);
   * `abort`: they are cancelled. Operations that are live after it end with `session-closed`. Never rejects.
   */
  close(options?: { readonly policy?: "drain" | "abort"; readonly drainTimeoutMs?: number }): Promise<void>;
}
