import { FrameDecoder, readMessage } from "../../codec/decoder.ts";
import type { Frame } from "../../codec/frame.ts";
import { decodePacket } from "../../codec/packet.ts";
import type { AnyPacket, Packet } from "../../codec/packet-types.ts";
import {
  SessionErrorCode,
  SessionFlags,
  SessionFlagsAck,
  SessionPriorityClass,
  SessionStatus,
  StandardProfile,
  TokenSchema,
} from "../../codec/registries.ts";
import { NnrpWireError } from "../../codec/wire-error.ts";
import type { Carrier, CarrierInfo, CarrierReceiver } from "../carrier.ts";
import type { Clock } from "../clock.ts";
import type { ServerLimits } from "../limits.ts";
import { Outbox } from "../outbox.ts";
import { RecentIds } from "../recent.ts";
import { encodeDiagnostic } from "../text.ts";
import { readHello } from "./hello.ts";
import type { ResumableSessions } from "./resume.ts";
import { Session, type SessionHost } from "./session.ts";
import type { ServerConnection, ServerHandler, ServerLogEvent, SessionDecision, StopCause } from "./types.ts";

/** Closed sessions with an id of the client's choice whose late packets are known to be late. */
const recentSessions = 256;
const webSocketProtocolError = 1002;
/** How long a carrier may take to end after this side closed it. */
const lingerMs = 5000;

/** What a connection needs of its server. */
export interface ConnectionHost {
  readonly handler: ServerHandler;
  readonly clock: Clock;
  readonly limits: ServerLimits;
  readonly acceptAuthBlocks: boolean;
  readonly resumable: ResumableSessions;
  readonly closing: boolean;
  operationEnded(): void;
  /** A function of the application threw. */
  failed(error: unknown): void;
  /** The carrier is gone. */
  ended(connection: Connection): void;
}

/** One carrier's worth of sessions: the handshake, who a packet belongs to, what waits to be sent. */
export class Connection implements ServerConnection, SessionHost, CarrierReceiver {
  readonly id: number;
  readonly outbox: Outbox;
  authBlock: Uint8Array | undefined;
  readonly #host: ConnectionHost;
  readonly #carrier: Carrier;
  readonly #decoder: FrameDecoder;
  readonly #sessions = new Map<number, Session>();
  /** Ids that a pending SESSION_OPEN asked for. */
  readonly #opening = new Set<number>();
  #openings = 0;
  readonly #closedIds = new RecentIds<number>(recentSessions);
  #nextId = 1;
  #greeted = false;
  #ended = false;
  #probes = 0;
  #errors = 0;
  #congested = false;
  #readingPaused = false;
  #operations = 0;
  #endedAt: number | undefined;
  readonly #startedAt: number;
  #lastPacketAt: number;
  #progressAt: number;
  #lastWaiting = 0;

  constructor(host: ConnectionHost, carrier: Carrier, id: number) {
    this.#host = host;
    this.#carrier = carrier;
    this.id = id;
    this.outbox = new Outbox(carrier, host.clock);
    this.#decoder = new FrameDecoder(host.limits.handshakeFrameBytes);
    this.#startedAt = host.clock.now();
    this.#lastPacketAt = this.#startedAt;
    this.#progressAt = this.#startedAt;
  }

  start(): void {
    this.#carrier.start(this);
  }

  get carrier(): CarrierInfo {
    return this.#carrier;
  }

  get connection(): ServerConnection {
    return this;
  }

  get clock(): Clock {
    return this.#host.clock;
  }

  get limits(): ServerLimits {
    return this.#host.limits;
  }

  get handler(): ServerHandler {
    return this.#host.handler;
  }

  get closing(): boolean {
    return this.#host.closing;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  get operations(): number {
    return this.#operations;
  }

  // Receiving

  data(bytes: Uint8Array): void {
    if (this.#ended) return;
    this.#lastPacketAt = this.clock.now();
    try {
      if (this.#carrier.framing === "message") this.#frame(readMessage(bytes, this.#decoder.frameBytesLimit));
      else this.#decoder.push(bytes, this.#frame);
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#violate(error.message);
    }
    this.#pauseReading();
  }

  readonly #frame = (frame: Frame): boolean => {
    let packet: AnyPacket;
    try {
      packet = decodePacket(frame);
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#unreadable(frame, error);
      return !this.#ended;
    }
    try {
      this.#dispatch(packet);
    } catch (error) {
      this.failed(error);
    }
    return !this.#ended;
  };

  #dispatch(packet: AnyPacket): void {
    if (packet.sessionId === 0) this.#connectionPacket(packet);
    else if (!this.#greeted) this.#violate(`${packet.type} before CLIENT_HELLO`);
    else {
      const session = this.#sessions.get(packet.sessionId);
      if (session !== undefined) session.receive(packet);
      else this.#strayPacket(packet.sessionId, packet.type);
    }
  }

  failed(error: unknown): void {
    this.#host.failed(error);
  }

  /** A packet with wrong metadata. Inside a session it costs no more than itself. */
  #unreadable(frame: Frame, error: NnrpWireError): void {
    const session = this.#sessions.get(frame.sessionId);
    if (session !== undefined) {
      this.#refuseSubmit(session, frame, error);
      session.errors += 1;
      this.misbehaved(session, error.message);
    } else if (frame.sessionId !== 0 && this.#greeted) this.#strayPacket(frame.sessionId, frame.type);
    else if (this.#greeted && frame.type === "SESSION_OPEN" && error.code === "bad-field") {
      const code =
        error.field === "priorityClass" ? SessionErrorCode.priorityRejected : SessionErrorCode.leasePolicyRejected;
      this.#refuseSession(undefined, code, error.message);
      this.#countError(error.message);
    } else this.#violate(error.message);
  }

  /** Answers a submit whose operation can be told although its metadata is wrong. */
  #refuseSubmit(session: Session, frame: Frame, error: NnrpWireError): void {
    if (frame.type !== "FRAME_SUBMIT" || frame.frameId === 0 || frame.metaLength !== 72) return;
    const operationId = frame.view.getBigUint64(frame.metadataStart + 40, true);
    if (operationId !== 0n) session.refuseUnreadable(frame.frameId, operationId, error.message);
  }

  /** Late packets of a closed session are nothing; an id that never was is the end. */
  #strayPacket(sessionId: number, type: string): void {
    if (sessionId < this.#nextId || this.#closedIds.has(sessionId)) return;
    this.#violate(`${type} for a session that was never opened`);
  }

  #connectionPacket(packet: AnyPacket): void {
    if (packet.type === "TRANSPORT_PROBE") this.#probe(packet);
    else if (packet.type === "CLIENT_HELLO") this.#hello(packet);
    else if (!this.#greeted) this.#violate(`${packet.type} before CLIENT_HELLO`);
    else {
      switch (packet.type) {
        case "SESSION_OPEN":
          this.#open(packet);
          return;
        case "PING":
          if (!this.overflows()) this.outbox.write({ type: "PONG" });
          return;
        case "CLOSE":
          this.close();
          return;
        case "PONG":
        case "ERROR":
        case "FLOW_UPDATE":
          return;
        default:
          this.#violate(`${packet.type} has no session`);
      }
    }
  }

  #probe({ metadata }: Packet<"TRANSPORT_PROBE">): void {
    this.#probes += 1;
    if (this.#probes > this.limits.probesPerConnection) {
      this.#violate("Too many probes");
      return;
    }
    this.outbox.write({
      type: "TRANSPORT_PROBE_ACK",
      metadata: { probeId: metadata.probeId, serverRecvTsUs: BigInt(Math.round(this.clock.now() * 1000)) },
    });
  }

  #hello(packet: Packet<"CLIENT_HELLO">): void {
    if (this.#greeted) {
      this.#violate("CLIENT_HELLO twice");
      return;
    }
    const answer = readHello(packet, this.limits, this.#host.acceptAuthBlocks);
    if (typeof answer === "string") {
      this.#violate(answer);
      return;
    }
    this.#greeted = true;
    this.authBlock = answer.authBlock;
    this.#decoder.frameBytesLimit = this.limits.frameBytes;
    this.outbox.write(answer.acknowledgement);
    this.log("connection-opened");
  }

  // Sessions

  #open(packet: Packet<"SESSION_OPEN">): void {
    const { metadata } = packet;
    const refusal = this.#refusal(packet);
    if (refusal !== undefined) {
      this.#refuseSession(packet, refusal.code, refusal.reason);
      return;
    }
    const wanted = metadata.requestedSessionId;
    const token = packet.body.subarray(0, metadata.resumeTokenBytes);
    const resumed = token.byteLength > 0 ? this.#host.resumable.take(wanted, token) : undefined;
    if (token.byteLength > 0 && resumed === undefined) {
      this.#refuseSession(packet, SessionErrorCode.resumeRejected, "the session cannot be resumed");
      return;
    }
    if (wanted !== 0) this.#opening.add(wanted);
    this.#openings += 1;
    const auth = packet.body.subarray(metadata.resumeTokenBytes, metadata.resumeTokenBytes + metadata.authBytes);
    const decide = async (): Promise<SessionDecision> =>
      this.handler.open?.({
        connection: this,
        profileId: metadata.profileId,
        schemaId: metadata.schemaId,
        schemaVersion: metadata.schemaVersion,
        priorityClass: metadata.priorityClass,
        flags: metadata.sessionFlags,
        defaultDeadlineMs: metadata.defaultDeadlineMs,
        maxInFlight: metadata.maxInFlightOperations,
        clientTag: metadata.clientSessionTag,
        authBlock: auth.byteLength > 0 ? auth : undefined,
        resumed,
      }) ?? { accept: true };
    const settle = (decision: SessionDecision) => {
      this.#opening.delete(wanted);
      this.#openings -= 1;
      if (this.#ended) return;
      if (decision.accept) this.#admit(packet, decision.data, resumed);
      else this.#refuseSession(packet, decision.code, decision.reason, decision.retryLater);
    };
    const refuse = (error: unknown) => {
      this.failed(error);
      settle({ accept: false, code: SessionErrorCode.authFailed, reason: "internal error" });
    };
    if (this.handler.open === undefined) settle({ accept: true });
    else {
      decide().then(settle, refuse);
    }
  }

  /** What this side refuses by itself. */
  #refusal({ metadata, body }: Packet<"SESSION_OPEN">): { code: number; reason: string } | undefined {
    const { profileId, schemaId, schemaVersion, requestedSessionId, resumeTokenBytes, sessionFlags } = metadata;
    if (!knownContexts.some(([profile]) => profile === profileId)) {
      return { code: SessionErrorCode.profileUnsupported, reason: `profile ${profileId} is not offered` };
    }
    if (!knownContexts.some((known) => known.join() === [profileId, schemaId, schemaVersion].join())) {
      return {
        code: SessionErrorCode.schemaUnsupported,
        reason: `schema 0x${schemaId.toString(16)} version ${schemaVersion} is not offered for profile ${profileId}`,
      };
    }
    if (metadata.maxInFlightOperations > this.limits.operationsPerSession) {
      return {
        code: SessionErrorCode.sessionLimitReached,
        reason: `at most ${this.limits.operationsPerSession} operations in flight are granted`,
      };
    }
    if (metadata.authBytes > 0 && !this.#host.acceptAuthBlocks) {
      return { code: SessionErrorCode.authFailed, reason: "authentication blocks are not taken here" };
    }
    if (metadata.sessionExtensionBytes > 0 || body.byteLength > resumeTokenBytes + metadata.authBytes) {
      return { code: SessionErrorCode.leasePolicyRejected, reason: "session extensions are not taken here" };
    }
    if (resumeTokenBytes > 0 && ((sessionFlags & SessionFlags.allowResume) === 0 || requestedSessionId === 0)) {
      return { code: SessionErrorCode.resumeRejected, reason: "a resume token needs its flag and the session's id" };
    }
    const taken = this.#sessions.has(requestedSessionId) || this.#opening.has(requestedSessionId);
    if (requestedSessionId !== 0 && (taken || this.#wasUsed(requestedSessionId))) {
      return { code: SessionErrorCode.sessionLimitReached, reason: `session id ${requestedSessionId} is taken` };
    }
    if (this.#host.closing) return { code: SessionErrorCode.sessionLimitReached, reason: "the server is closing" };
    if (this.#sessions.size + this.#openings >= this.limits.sessionsPerConnection) {
      return { code: SessionErrorCode.sessionLimitReached, reason: "too many sessions on this connection" };
    }
    return undefined;
  }

  #wasUsed(id: number): boolean {
    return id < this.#nextId || this.#closedIds.has(id);
  }

  #admit(packet: Packet<"SESSION_OPEN">, data: unknown, resumed: { readonly data: unknown } | undefined): void {
    const { metadata } = packet;
    const id = metadata.requestedSessionId === 0 ? this.#freshId() : metadata.requestedSessionId;
    const { profileId, priorityClass, sessionFlags: flags, defaultDeadlineMs, clientSessionTag: clientTag } = metadata;
    const session = new Session(this, { id, profileId, priorityClass, flags, defaultDeadlineMs, clientTag });
    session.data = data ?? resumed?.data;
    if ((flags & SessionFlags.allowResume) !== 0) session.resumeToken = this.#host.resumable.makeToken();
    const token = session.resumeToken;
    this.#sessions.set(id, session);
    this.outbox.write({
      type: "SESSION_OPEN_ACK",
      sessionId: id,
      metadata: {
        sessionId: id,
        acceptedProfileId: profileId,
        acceptedPriorityClass: priorityClass,
        sessionStatus: resumed === undefined ? SessionStatus.opened : SessionStatus.resumed,
        schemaId: metadata.schemaId,
        schemaVersion: metadata.schemaVersion,
        grantedOperationCredit: this.#granted(metadata.maxInFlightOperations),
        maxInFlightOperations: this.#granted(metadata.maxInFlightOperations),
        leaseTtlMs: metadata.leaseTtlHintMs,
        resumeWindowMs: token === undefined ? 0 : this.limits.resumeWindowMs,
        resumeTokenBytes: token?.byteLength ?? 0,
        serverSessionTag: BigInt(id),
        sessionFlagsAck: token === undefined ? 0 : SessionFlagsAck.resumeEnabled,
      },
      ...(token === undefined ? {} : { body: token }),
    });
    this.#tell(() => this.handler.opened?.(session));
  }

  /** Calls the application; what it throws goes no further. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.failed(error);
    }
  }

  #granted(wanted: number): number {
    return wanted === 0 ? Math.min(this.limits.operationsPerSession, 0xffff) : wanted;
  }

  #freshId(): number {
    while (this.#sessions.has(this.#nextId) || this.#opening.has(this.#nextId) || this.#closedIds.has(this.#nextId)) {
      this.#nextId += 1;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    return id;
  }

  #refuseSession(packet: Packet<"SESSION_OPEN"> | undefined, code: number, reason: string, retryLater = false): void {
    const metadata = packet?.metadata;
    const body = encodeDiagnostic(reason);
    this.outbox.write({
      type: "SESSION_OPEN_ACK",
      metadata: {
        acceptedProfileId: metadata?.profileId ?? 0,
        acceptedPriorityClass: metadata?.priorityClass ?? SessionPriorityClass.balanced,
        sessionStatus: retryLater ? SessionStatus.retryLater : SessionStatus.rejected,
        schemaId: metadata?.schemaId ?? 0,
        schemaVersion: metadata?.schemaVersion ?? 0,
        sessionExtensionBytes: body?.byteLength ?? 0,
        sessionErrorCode: code,
      },
      ...(body === undefined ? {} : { body }),
    });
  }

  sessionEnded(session: Session): void {
    this.#sessions.delete(session.id);
    this.#closedIds.add(session.id);
    this.#tell(() => this.handler.closed?.(session, false));
  }

  operationStarted(): void {
    this.#operations += 1;
  }

  operationEnded(): void {
    this.#operations -= 1;
    this.#host.operationEnded();
  }

  misbehaved(session: Session, detail: string): void {
    this.log("protocol-error", `session ${session.id}: ${detail}`);
    if (session.errors > this.limits.protocolErrorsPerSession) this.#violate("Too many bad packets in one session");
  }

  #countError(detail: string): void {
    this.#errors += 1;
    if (this.#errors > this.limits.protocolErrorsPerConnection) this.#violate(detail);
  }

  // Sending

  takesMore(): boolean {
    if (this.outbox.waitingBytes < this.limits.writableBytes) return true;
    this.outbox.flush();
    if (this.outbox.waitingBytes < this.limits.writableBytes) return true;
    this.#congested = true;
    return false;
  }

  overflows(): boolean {
    if (this.#ended) return true;
    if (this.outbox.waitingBytes < this.limits.bufferedBytes) return false;
    this.outbox.flush();
    if (this.outbox.waitingBytes < this.limits.bufferedBytes) return false;
    this.log("protocol-error", "more was written than the peer reads");
    this.destroy();
    return true;
  }

  drained(): void {
    this.#progressAt = this.clock.now();
    if (this.#readingPaused && this.outbox.waitingBytes < this.limits.writableBytes) {
      this.#readingPaused = false;
      this.#carrier.resume();
    }
    if (!this.#congested || this.outbox.waitingBytes >= this.limits.writableBytes) return;
    this.#congested = false;
    for (const session of this.#sessions.values()) session.resume();
  }

  /** A peer that makes this side answer without reading the answers is not read either. */
  #pauseReading(): void {
    if (this.#ended || this.#readingPaused || this.outbox.waitingBytes < this.limits.bufferedBytes / 2) return;
    this.outbox.flush();
    if (this.outbox.waitingBytes < this.limits.bufferedBytes / 2) return;
    this.#readingPaused = true;
    this.#carrier.pause();
  }

  // The end

  /** Called now and then: ends what takes too long. */
  check(now: number): void {
    const { handshakeMs, idleMs, stallMs } = this.limits;
    if (this.#endedAt !== undefined) {
      if (now - this.#endedAt >= Math.min(stallMs, lingerMs)) this.#carrier.destroy();
      return;
    }
    const waiting = this.outbox.waitingBytes;
    if (waiting === 0 || waiting < this.#lastWaiting) this.#progressAt = now;
    this.#lastWaiting = waiting;
    if (!this.#greeted && now - this.#startedAt >= handshakeMs) this.#violate("No hello in time");
    else if (waiting > 0 && now - this.#progressAt >= stallMs) {
      this.log("protocol-error", "the peer stopped reading");
      this.destroy();
    } else if (this.#operations === 0 && waiting === 0 && now - this.#lastPacketAt >= idleMs) this.close();
  }

  #violate(detail: string): void {
    if (this.#ended) return;
    this.log("protocol-error", detail);
    this.#finish();
    this.outbox.flush();
    this.#carrier.close(webSocketProtocolError);
  }

  close(): void {
    this.#finish();
    this.outbox.flush();
    this.#carrier.close();
  }

  destroy(): void {
    this.#finish();
    this.#carrier.destroy();
  }

  ended(error?: Error): void {
    this.#finish(error?.message);
    this.#host.ended(this);
  }

  stopAll(cause: StopCause): void {
    for (const session of [...this.#sessions.values()]) session.stopAll(cause);
  }

  #finish(detail?: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endedAt = this.clock.now();
    for (const session of [...this.#sessions.values()]) {
      session.lose();
      const resumable = session.resumeToken !== undefined && !this.#host.closing;
      if (resumable) this.#host.resumable.keep(session);
      this.#tell(() => this.handler.closed?.(session, resumable));
    }
    this.#sessions.clear();
    if (this.#greeted) this.log("connection-closed", detail);
  }

  log(event: ServerLogEvent["event"], detail?: string): void {
    const { kind: carrier, remote } = this.#carrier;
    this.handler.log?.({
      event,
      connectionId: this.id,
      carrier,
      remote,
      ...(detail === undefined ? {} : { detail }),
    });
  }
}

/** What sessions may be opened with. Other implementations always say the first; the second is what payloads say. */
const knownContexts = [
  [StandardProfile.token, TokenSchema.id, TokenSchema.version],
  [StandardProfile.unspecified, 0, 0],
] as const;
