import { FrameDecoder, readMessage } from "../../codec/decoder.ts";
import type { Frame } from "../../codec/frame.ts";
import { decodePacket } from "../../codec/packet.ts";
import type { AnyPacket, AnyPacketDraft, Packet } from "../../codec/packet-types.ts";
import {
  SessionCloseReason,
  SessionFlags,
  SessionPriorityClass,
  SessionStatus,
  StandardProfile,
  TokenSchema,
} from "../../codec/registries.ts";
import { NnrpWireError } from "../../codec/wire-error.ts";
import type { Carrier, CarrierInfo, CarrierReceiver } from "../carrier.ts";
import { type Clock, systemClock } from "../clock.ts";
import { NnrpError } from "../errors.ts";
import { type ClientLimits, defaultClientLimits } from "../limits.ts";
import { Outbox } from "../outbox.ts";
import { RecentIds } from "../recent.ts";
import { decodeDiagnostic } from "../text.ts";
import { Session, type SessionHost } from "./session.ts";
import type { ClientConnection, ClientOptions, ClientSession, SessionOptions } from "./types.ts";

const offeredProfiles = 0x3;
/** Tensor, token, structured event, tool delta, opaque bytes: what other implementations offer. */
const offeredPayloadKinds = 0x73;
const recentSessions = 256;

/** An answer that is waited for. */
interface Awaited<P> {
  resolve(packet: P): void;
  reject(error: NnrpError): void;
}

/**
 * Says hello over a carrier and answers the connection once the server accepted.
 *
 * @throws {NnrpError} `timeout`, `connect-failed`, `protocol-error`, `cancelled`; the carrier is then ended.
 */
export async function connectCarrier(carrier: Carrier, options: ClientOptions = {}): Promise<ClientConnection> {
  const connection = new Connection(carrier, options);
  try {
    await connection.handshake(options);
  } catch (error) {
    connection.destroy();
    throw error;
  }
  return connection;
}

class Connection implements ClientConnection, SessionHost, CarrierReceiver {
  readonly closed: Promise<NnrpError | undefined>;
  readonly clock: Clock;
  readonly limits: ClientLimits;
  maxBodyBytes = 0;
  authStatus = 0;
  isClosed = false;
  readonly #carrier: Carrier;
  readonly #outbox: Outbox;
  readonly #decoder: FrameDecoder;
  readonly #sessions = new Map<number, Session>();
  readonly #closedIds = new RecentIds<number>(recentSessions);
  #resolveClosed: (error: NnrpError | undefined) => void = () => {};
  #hello: Awaited<Packet<"SERVER_HELLO_ACK">> | undefined;
  #opening: Awaited<Packet<"SESSION_OPEN_ACK">> | undefined;
  /** Opens are done one after another. */
  #lastOpen: Promise<unknown> = Promise.resolve();
  #abandonedOpens = 0;
  #unreadBytes = 0;
  #readingPaused = false;
  #errors = 0;
  /** The carrier is gone; `isClosed` is set as soon as this side gives up. */
  #carrierEnded: () => void = () => {};
  readonly #whenCarrierEnded: Promise<void>;

  constructor(carrier: Carrier, options: ClientOptions) {
    this.#carrier = carrier;
    this.clock = options.clock ?? systemClock;
    this.limits = { ...defaultClientLimits, ...options.limits };
    this.#outbox = new Outbox(carrier, this.clock);
    this.#decoder = new FrameDecoder(this.limits.frameBytes);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#whenCarrierEnded = new Promise((resolve) => {
      this.#carrierEnded = resolve;
    });
  }

  get carrier(): CarrierInfo {
    return this.#carrier;
  }

  get connection(): ClientConnection {
    return this;
  }

  // Opening

  async handshake({ authBlock, signal }: ClientOptions): Promise<void> {
    this.#carrier.start(this);
    const answer = this.#await<Packet<"SERVER_HELLO_ACK">>("hello", this.limits.handshakeMs, signal, (awaited) => {
      this.#hello = awaited;
    });
    this.send({
      type: "CLIENT_HELLO",
      metadata: {
        minVersionMajor: 1,
        maxVersionMajor: 1,
        supportedWireFormatBitmap: 1,
        supportedProfileBitmap: offeredProfiles,
        supportedPayloadKindBitmap: offeredPayloadKinds,
        maxLaneCount: 1,
        latencyBudgetMs: 500,
        authBytes: authBlock?.byteLength ?? 0,
      },
      ...(authBlock === undefined ? {} : { body: authBlock }),
    });
    const { metadata } = await answer;
    const { acceptedProfileBitmap, acceptedPayloadKindBitmap } = metadata;
    const foreign = (acceptedProfileBitmap & ~offeredProfiles) | (acceptedPayloadKindBitmap & ~offeredPayloadKinds);
    if (metadata.selectedVersionMajor !== 1 || metadata.selectedWireFormat !== 0 || foreign !== 0) {
      throw new NnrpError("protocol-error", "The server accepted what was not offered");
    }
    this.maxBodyBytes = metadata.maxBodyBytes;
    this.authStatus = metadata.authStatus;
  }

  openSession(options: SessionOptions = {}): Promise<ClientSession> {
    const opened = this.#lastOpen.then(() => this.#open(options));
    this.#lastOpen = opened.catch(() => {});
    return opened;
  }

  async #open(options: SessionOptions): Promise<ClientSession> {
    if (this.isClosed) throw new NnrpError("connection-closed", "The connection is closed");
    const { resume, authBlock } = options;
    if (options.signal?.aborted) {
      throw new NnrpError("cancelled", "The session was given up", { cause: options.signal.reason });
    }
    const body = joined(resume?.token, authBlock);
    const answer = this.#await<Packet<"SESSION_OPEN_ACK">>("session", this.limits.openMs, options.signal, (awaited) => {
      this.#opening = awaited;
    });
    const requestedSessionId = resume?.sessionId ?? options.requestedSessionId ?? 0;
    const allowResume = options.allowResume || resume !== undefined;
    try {
      this.send({
        type: "SESSION_OPEN",
        metadata: {
          requestedSessionId,
          profileId: options.profileId ?? StandardProfile.token,
          schemaId: options.schemaId ?? TokenSchema.id,
          schemaVersion: options.schemaVersion ?? TokenSchema.version,
          priorityClass: SessionPriorityClass[options.priority ?? "balanced"],
          sessionFlags: allowResume ? SessionFlags.allowResume : 0,
          defaultDeadlineMs: options.defaultDeadlineMs ?? 500,
          maxInFlightOperations: options.maxInFlight ?? 4,
          leaseTtlHintMs: 30_000,
          resumeTokenBytes: resume?.token.byteLength ?? 0,
          authBytes: authBlock?.byteLength ?? 0,
          clientSessionTag: options.clientTag ?? BigInt(requestedSessionId),
        },
        body,
      });
    } catch (error) {
      this.#opening?.reject(new NnrpError("invalid-argument", String(error)));
      await answer;
    }
    return this.#admit(await this.#abandonable(answer));
  }

  /** The acknowledgement of an open that was given up may still come; it is not the next one's. */
  async #abandonable(answer: Promise<Packet<"SESSION_OPEN_ACK">>): Promise<Packet<"SESSION_OPEN_ACK">> {
    try {
      return await answer;
    } catch (error) {
      this.#abandonedOpens += 1;
      throw error;
    }
  }

  #admit({ metadata, body }: Packet<"SESSION_OPEN_ACK">): ClientSession {
    const { sessionId: id, sessionStatus, resumeTokenBytes } = metadata;
    if (sessionStatus === SessionStatus.rejected || sessionStatus === SessionStatus.retryLater) {
      const reason = decodeDiagnostic(body.subarray(resumeTokenBytes));
      const code = metadata.sessionErrorCode;
      throw new NnrpError(
        "session-rejected",
        `The server refused the session (0x${code.toString(16)}) ${reason}`.trim(),
        {
          nnrpCode: code,
          retryLater: sessionStatus === SessionStatus.retryLater,
        },
      );
    }
    if (id === 0 || this.#sessions.has(id)) {
      throw new NnrpError("protocol-error", "The server opened a session with an id that cannot be");
    }
    const token = body.slice(0, resumeTokenBytes);
    const session = new Session(this, {
      id,
      maxInFlight: Math.max(metadata.maxInFlightOperations, 1),
      operationCredit: metadata.grantedOperationCredit,
      resumeTicket: token.byteLength > 0 ? { sessionId: id, token, windowMs: metadata.resumeWindowMs } : undefined,
      resumed: sessionStatus === SessionStatus.resumed,
      priorityClass: metadata.acceptedPriorityClass,
    });
    this.#sessions.set(id, session);
    return session;
  }

  /** A promise of an answer, with its time limit. */
  #await<P>(
    what: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    register: (awaited: Awaited<P> | undefined) => void,
  ): Promise<P> {
    return new Promise((resolve, reject) => {
      const fail = (error: NnrpError) => settle(() => reject(error));
      const giveUp = () => fail(new NnrpError("cancelled", `The ${what} was given up`, { cause: signal?.reason }));
      const cancelTimer = this.clock.after(timeoutMs, () =>
        fail(new NnrpError("timeout", `The server did not answer the ${what} within ${timeoutMs} ms`)),
      );
      const settle = (finish: () => void) => {
        cancelTimer();
        signal?.removeEventListener("abort", giveUp);
        register(undefined);
        finish();
      };
      register({ resolve: (packet) => settle(() => resolve(packet)), reject: fail });
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  // Receiving

  data(bytes: Uint8Array): void {
    if (this.isClosed) return;
    try {
      if (this.#carrier.framing === "message") this.#frame(readMessage(bytes, this.limits.frameBytes));
      else this.#decoder.push(bytes, this.#frame);
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#fail(new NnrpError("protocol-error", `The server sent what is not NNRP: ${error.message}`));
    }
  }

  readonly #frame = (frame: Frame): boolean => {
    let packet: AnyPacket | undefined;
    try {
      packet = decodePacket(frame);
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.misbehaved(error.message);
    }
    if (packet !== undefined) {
      try {
        this.#dispatch(packet);
      } catch (error) {
        // A listener of the application threw; what it heard about goes on.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
    return !this.isClosed;
  };

  #dispatch(packet: AnyPacket): void {
    if (packet.type === "SESSION_OPEN_ACK") {
      if (this.#abandonedOpens > 0) this.#closeAbandoned(packet);
      else if (this.#opening === undefined) this.misbehaved("SESSION_OPEN_ACK without an open");
      else this.#opening.resolve(packet);
      return;
    }
    if (packet.sessionId === 0) {
      this.#connectionPacket(packet);
      return;
    }
    const session = this.#sessions.get(packet.sessionId);
    if (session !== undefined) session.receive(packet);
    else if (!this.#closedIds.has(packet.sessionId)) this.misbehaved(`${packet.type} for an unknown session`);
  }

  #closeAbandoned({ metadata }: Packet<"SESSION_OPEN_ACK">): void {
    this.#abandonedOpens -= 1;
    if (metadata.sessionId === 0) return;
    this.#closedIds.add(metadata.sessionId);
    this.send({
      type: "SESSION_CLOSE",
      sessionId: metadata.sessionId,
      metadata: { closeReason: SessionCloseReason.clientShutdown, sessionCloseTag: metadata.sessionId },
    });
  }

  #connectionPacket(packet: AnyPacket): void {
    switch (packet.type) {
      case "SERVER_HELLO_ACK":
        if (this.#hello === undefined) this.misbehaved("SERVER_HELLO_ACK twice");
        else this.#hello.resolve(packet);
        return;
      case "PING":
        this.send({ type: "PONG" });
        return;
      case "CLOSE":
        this.#fail(new NnrpError("connection-closed", "The server closed the connection"));
        return;
      case "ERROR": {
        const text = decodeDiagnostic(packet.body) || `error ${packet.metadata.errorCode}`;
        const error = new NnrpError("protocol-error", `The server reports: ${text}`, {
          nnrpCode: packet.metadata.errorCode,
        });
        if (packet.metadata.isFatal !== 0 || this.#hello !== undefined) this.#fail(error);
        return;
      }
      case "PONG":
      case "FLOW_UPDATE":
      case "RETRY_AFTER":
      case "ERROR_RECOVERABLE":
      case "TRANSPORT_PROBE_ACK":
        return;
      default:
        this.misbehaved(`${packet.type} without a session`);
    }
  }

  misbehaved(detail: string): void {
    this.#errors += 1;
    if (this.#errors > this.limits.protocolErrors) {
      this.#fail(new NnrpError("protocol-error", `The server sent too many bad packets; the last: ${detail}`));
    }
  }

  unread(bytes: number): void {
    this.#unreadBytes += bytes;
    const { unreadBytes } = this.limits;
    if (this.#unreadBytes >= unreadBytes * 2) {
      this.#fail(new NnrpError("limit-reached", "Events were not read in time (unreadBytes)"));
    } else if (!this.#readingPaused && this.#unreadBytes >= unreadBytes) {
      this.#readingPaused = true;
      this.#carrier.pause();
    } else if (this.#readingPaused && this.#unreadBytes < unreadBytes / 2) {
      this.#readingPaused = false;
      this.#carrier.resume();
    }
  }

  // Sending

  send(draft: AnyPacketDraft): void {
    if (this.isClosed) return;
    if (this.#outbox.waitingBytes >= this.limits.bufferedBytes) {
      this.#fail(new NnrpError("limit-reached", "The server does not read (bufferedBytes)"));
      return;
    }
    this.#outbox.write(draft);
  }

  drained(): void {}

  // The end

  sessionEnded(session: Session): void {
    this.#sessions.delete(session.id);
    this.#closedIds.add(session.id);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close({ policy: "abort" })));
    this.#finish(undefined);
    this.#outbox.flush();
    this.#carrier.close();
    const cancel = this.clock.after(this.limits.closeMs, () => this.#carrier.destroy());
    await this.#whenCarrierEnded;
    cancel();
  }

  destroy(): void {
    this.#finish(undefined);
    this.#carrier.destroy();
  }

  #fail(error: NnrpError): void {
    this.#finish(error);
    this.#carrier.destroy();
  }

  ended(error?: Error): void {
    const detail = error === undefined ? "" : `: ${error.message}`;
    this.#finish(new NnrpError("connection-closed", `The connection was lost${detail}`, { cause: error }));
    this.#carrierEnded();
  }

  #finish(error: NnrpError | undefined): void {
    if (this.isClosed) return;
    this.isClosed = true;
    const cause = error ?? new NnrpError("connection-closed", "The connection was closed");
    this.#hello?.reject(new NnrpError("connect-failed", cause.message, { cause }));
    this.#opening?.reject(cause);
    for (const session of [...this.#sessions.values()]) session.finish(cause);
    this.#resolveClosed(error);
  }
}

function joined(...parts: readonly (Uint8Array | undefined)[]): Uint8Array {
  const given = parts.filter((part) => part !== undefined);
  const all = new Uint8Array(given.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of given) {
    all.set(part, at);
    at += part.byteLength;
  }
  return all;
}
