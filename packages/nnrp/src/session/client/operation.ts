import type { AnyPacketDraft } from "../../codec/packet-types.ts";
import { ReasonCode, RuntimeRole } from "../../codec/registries.ts";
import type { TypedPayload } from "../../codec/typed-payload.ts";
import {
  backpressurePacket,
  budgetPacket,
  creditPacket,
  priorityPacket,
  type Target,
  timeLimitPacket,
  traceContextPacket,
} from "../control-packets.ts";
import type { Backpressure, Budget, PriorityUpdate, TimeLimit, TraceContext } from "../controls.ts";
import { NnrpError } from "../errors.ts";
import type { ClientOperation, ClientSession, OperationEnd, OperationEvent, SubmitRequest } from "./types.ts";

/** What an unread event costs beside its body. */
const eventBytes = 256;

/** What an operation needs of its session. */
export interface OperationHost {
  readonly session: ClientSession;
  send(draft: AnyPacketDraft): void;
  /** Counts unread bytes of the connection; receiving pauses when there are too many. */
  unread(bytes: number): void;
  /** It wants to stop: before it was sent, or with a packet for the peer. */
  withdraw(operation: Operation): void;
  /** Waits for an end after a cancel. */
  expectEnd(operation: Operation): () => void;
}

/** A submit with its body laid out. */
export interface Prepared {
  readonly id: bigint;
  readonly request: SubmitRequest;
  readonly body: Uint8Array;
  readonly payloadKinds: number;
  readonly payloads: readonly TypedPayload[];
}

type Waiter = (result: IteratorResult<OperationEvent>) => void;

export class Operation implements ClientOperation, Target {
  readonly id: bigint;
  readonly prepared: Prepared;
  frameId = 0;
  queued = true;
  finished = false;
  readonly ended: Promise<OperationEnd>;
  readonly #host: OperationHost;
  readonly #onEvent: ((event: OperationEvent) => void) | undefined;
  #resolveEnd: (end: OperationEnd) => void = () => {};
  #events: OperationEvent[] = [];
  #read = 0;
  #waiter: Waiter | undefined;
  #controlSequence = 0;
  #stopping = false;
  #stopWaiting: (() => void) | undefined;
  #unlisten: (() => void) | undefined;
  /** Partials taken since credit was last sent. */
  #taken = 0;
  #abandoned = false;

  constructor(host: OperationHost, prepared: Prepared, onEvent: ((event: OperationEvent) => void) | undefined) {
    this.#host = host;
    this.id = prepared.id;
    this.prepared = prepared;
    this.#onEvent = onEvent;
    this.ended = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
    const { signal } = prepared.request;
    if (signal !== undefined) {
      const cancel = () => this.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      this.#unlisten = () => signal.removeEventListener("abort", cancel);
    }
  }

  get session(): ClientSession {
    return this.#host.session;
  }

  get sessionId(): number {
    return this.#host.session.id;
  }

  get operationId(): bigint {
    return this.id;
  }

  /** The controls that belong right behind the submit. */
  sendFirstControls(): void {
    const { traceContext, expireAt, priority, creditWindow } = this.prepared.request;
    if (traceContext !== undefined) this.sendTraceContext(traceContext);
    if (priority !== undefined) this.updatePriority(priority);
    if (expireAt !== undefined) this.setExpireAt(expireAt);
    if (creditWindow !== undefined) this.sendCredit(creditWindow);
  }

  nextControl(): number {
    this.#controlSequence += 1;
    return this.#controlSequence;
  }

  cancel(reason: number = ReasonCode.userCancelled): void {
    this.#stop("CANCEL", reason, 1);
  }

  abort(reason: number = ReasonCode.userCancelled): void {
    this.#stop("ABORT", reason, 2);
  }

  #stop(type: "CANCEL" | "ABORT", reasonCode: number, flags: number): void {
    if (this.finished || this.#stopping) return;
    this.#stopping = true;
    if (this.queued) {
      this.#host.withdraw(this);
      this.end({ type: "failed", error: new NnrpError("cancelled", "The operation was cancelled before it was sent") });
      return;
    }
    this.#host.send({
      type,
      sessionId: this.sessionId,
      frameId: this.frameId,
      metadata: {
        operationId: this.id,
        controlSequence: BigInt(this.nextControl()),
        reasonCode,
        sourceRole: RuntimeRole.client,
        flags,
      },
    });
    this.#stopWaiting = this.#host.expectEnd(this);
  }

  updatePriority(update: PriorityUpdate): void {
    this.#control(() => priorityPacket(this, this.nextControl(), update));
  }

  setDeadline(limit: TimeLimit): void {
    this.#control(() => timeLimitPacket("DEADLINE", this, this.nextControl(), limit));
  }

  setExpireAt(limit: TimeLimit): void {
    this.#control(() => timeLimitPacket("EXPIRE_AT", this, this.nextControl(), limit));
  }

  updateBudget(budget: Budget): void {
    this.#control(() => budgetPacket(this, budget));
  }

  sendTraceContext(context: TraceContext): void {
    this.#control(() => traceContextPacket(this, context));
  }

  sendBackpressure(pressure: Backpressure): void {
    this.#control(() => backpressurePacket(this, pressure));
  }

  sendCredit(window: number): void {
    this.#control(() => creditPacket(this, window));
  }

  /** Peers lose a session over a packet for an operation that they do not know (any more). */
  #control(draft: () => AnyPacketDraft): void {
    if (!this.finished && !this.queued) this.#host.send(draft());
  }

  /** Something happened that is not the end. */
  emit(event: OperationEvent): void {
    if (this.finished) return;
    this.#deliver(event);
  }

  end(end: OperationEnd): void {
    if (this.finished) return;
    this.finished = true;
    this.queued = false;
    this.#unlisten?.();
    this.#stopWaiting?.();
    this.#deliver(end);
    this.#resolveEnd(end);
  }

  #deliver(event: OperationEvent): void {
    if (this.#onEvent !== undefined) {
      if (event.type === "partial") this.#renewCredit();
      this.#onEvent(event);
    } else if (this.#waiter !== undefined) {
      const waiter = this.#waiter;
      this.#waiter = undefined;
      if (event.type === "partial") this.#renewCredit();
      waiter({ done: false, value: event });
    } else if (!this.#abandoned) {
      this.#events.push(event);
      this.#host.unread(costOf(event));
    }
  }

  #renewCredit(): void {
    const window = this.prepared.request.creditWindow;
    if (window === undefined) return;
    this.#taken += 1;
    if (this.#taken * 2 < window) return;
    this.#taken = 0;
    this.sendCredit(window);
  }

  [Symbol.asyncIterator](): AsyncIterator<OperationEvent> {
    return { next: () => this.#next(), return: () => this.#leave() };
  }

  #next(): Promise<IteratorResult<OperationEvent>> {
    const event = this.#events[this.#read];
    if (event !== undefined) {
      this.#read += 1;
      if (this.#read === this.#events.length) {
        this.#events = [];
        this.#read = 0;
      }
      this.#host.unread(-costOf(event));
      if (event.type === "partial") this.#renewCredit();
      return Promise.resolve({ done: false, value: event });
    }
    if (this.finished || this.#abandoned || this.#onEvent !== undefined)
      return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#waiter = resolve;
    });
  }

  #leave(): Promise<IteratorResult<OperationEvent>> {
    this.#abandoned = true;
    for (const event of this.#events.slice(this.#read)) this.#host.unread(-costOf(event));
    this.#events = [];
    this.#read = 0;
    this.cancel();
    return Promise.resolve({ done: true, value: undefined });
  }
}

const costOf = (event: OperationEvent): number =>
  eventBytes + ("body" in event && event.body !== undefined ? event.body.byteLength : 0);
