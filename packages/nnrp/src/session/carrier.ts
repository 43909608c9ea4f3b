/** Kinds of carriers, by the names that NNRP's transport ids have; `memory` joins two ends in one process. */
export type CarrierKind = "tcp" | "ipc" | "websocket" | "quic" | "memory";

/** What is known about the other end of a carrier before a packet came. */
export interface CarrierInfo {
  readonly kind: CarrierKind;
  /** TLS (or QUIC) protects the bytes. */
  readonly secure: boolean;
  /** The other end for logs: `127.0.0.1:50123`, a socket's path. Empty when unknown. */
  readonly remote: string;
  /** The WebSocket upgrade that opened the carrier: its request target and headers (names in lower case). */
  readonly upgrade?: {
    readonly target: string;
    readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  };
  /** For the application, handed through untouched (for example the principal that an upgrade handler found). */
  readonly attachment?: unknown;
}

/** Takes what a carrier receives. Calls come in order, one at a time, and never after `ended`. */
export interface CarrierReceiver {
  /** Bytes arrived: any part of the stream (`stream`), or one whole message (`message`). They stay the receiver's. */
  data(bytes: Uint8Array): void;
  /** Everything handed over was taken by the platform: `bufferedBytes` is low again. */
  drained(): void;
  /** The carrier ended, in both directions. `error` says why when it was not orderly. */
  ended(error?: Error): void;
}

/**
 * One duplex way for packets. Sessions only see this; a new carrier (QUIC, a test's own) needs nothing else.
 * None of the methods throws; after the end they do nothing.
 */
export interface Carrier extends CarrierInfo {
  /** `stream`: packets back to back. `message`: each packet is one message. */
  readonly framing: "stream" | "message";
  /** Bytes sent that the platform has not taken yet. */
  readonly bufferedBytes: number;
  /** Starts receiving. Called once, before anything else. */
  start(receiver: CarrierReceiver): void;
  /**
   * Sends whole packets, in order. `bytes` holds them back to back and is not touched again by the caller; `ends` are
   * the offsets where each ends, for carriers that frame messages.
   */
  send(bytes: Uint8Array, ends: readonly number[]): void;
  /** Stops receiving until `resume`, where the platform allows it. */
  pause(): void;
  resume(): void;
  /** Sends what is buffered, then ends in an orderly way. `code` is a WebSocket close code, ignored elsewhere. */
  close(code?: number): void;
  /** Ends at once; what is buffered may be lost. */
  destroy(): void;
}
