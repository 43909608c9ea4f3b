/** Limits of a server. Names end in their unit; a plain name counts things. */
export interface ServerLimits {
  /** Connections at once; more are closed at once. */
  readonly connections: number;
  /** Open sessions of one connection; more are refused with `sessionLimitReached`. */
  readonly sessionsPerConnection: number;
  /** Live operations of one session, and the most that a SESSION_OPEN may ask for; more are refused one by one. */
  readonly operationsPerSession: number;
  /** A received packet with header, metadata and body. The declared length is checked before anything is stored. */
  readonly frameBytes: number;
  /** The same before the hello was accepted. Probes (32 KiB each) must fit. */
  readonly handshakeFrameBytes: number;
  /** Answered TRANSPORT_PROBEs of one connection; more close it. */
  readonly probesPerConnection: number;
  /** Unsent bytes of one connection from which operations are no longer `writable`. */
  readonly writableBytes: number;
  /** Unsent bytes of one connection from which it is closed when more is written; receiving pauses at half of it. */
  readonly bufferedBytes: number;
  /** From the carrier's start to the hello. */
  readonly handshakeMs: number;
  /** Without a packet and without a live operation, then the connection is closed. */
  readonly idleMs: number;
  /** Without any progress while bytes wait to be sent, then the connection is closed. */
  readonly stallMs: number;
  /** Bad packets of one session; one more closes the connection. */
  readonly protocolErrorsPerSession: number;
  /** Bad packets of one connection that belong to no open session; one more closes it. */
  readonly protocolErrorsPerConnection: number;
  /** How long a closed session may drain, whatever the peer asks for. */
  readonly drainMs: number;
  /** How long a session that lost its connection can be resumed. 0 grants no resuming. */
  readonly resumeWindowMs: number;
  /** Sessions waiting to be resumed; the oldest is forgotten for a new one. */
  readonly resumableSessions: number;
}

export const defaultServerLimits: ServerLimits = {
  connections: 1024,
  sessionsPerConnection: 64,
  operationsPerSession: 64,
  frameBytes: 16 * 1024 * 1024,
  handshakeFrameBytes: 128 * 1024,
  probesPerConnection: 64,
  writableBytes: 256 * 1024,
  bufferedBytes: 8 * 1024 * 1024,
  handshakeMs: 10_000,
  idleMs: 600_000,
  stallMs: 30_000,
  protocolErrorsPerSession: 64,
  protocolErrorsPerConnection: 64,
  drainMs: 30_000,
  resumeWindowMs: 120_000,
  resumableSessions: 1024,
};

/** Limits of a client. */
export interface ClientLimits {
  /** Opening the carrier, TLS and upgrade included. */
  readonly connectMs: number;
  /** From the hello to its acknowledgement. */
  readonly handshakeMs: number;
  /** From SESSION_OPEN to its acknowledgement. */
  readonly openMs: number;
  /** From SESSION_CLOSE to its last acknowledgement, beside the drain time that was asked for. */
  readonly closeMs: number;
  /** From CANCEL or ABORT to the operation's end; then it ends on this side with `timeout`. */
  readonly cancelMs: number;
  /** A received packet. The declared length is checked before anything is stored. */
  readonly frameBytes: number;
  /** Unsent bytes of one connection from which it is closed when more is written. */
  readonly bufferedBytes: number;
  /** Event bytes nobody has read yet, of one connection: from here receiving pauses; at twice as many it is closed. */
  readonly unreadBytes: number;
  /** Submits of one session that wait because too many are in flight or the peer paused it. */
  readonly queuedOperations: number;
  /** Bad packets of one connection; one more closes it. */
  readonly protocolErrors: number;
}

export const defaultClientLimits: ClientLimits = {
  connectMs: 10_000,
  handshakeMs: 10_000,
  openMs: 10_000,
  closeMs: 5_000,
  cancelMs: 5_000,
  frameBytes: 64 * 1024 * 1024,
  bufferedBytes: 64 * 1024 * 1024,
  unreadBytes: 16 * 1024 * 1024,
  queuedOperations: 1024,
  protocolErrors: 64,
};
