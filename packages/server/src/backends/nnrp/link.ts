import { type ClientConnection, type ClientSession, NnrpError } from "@plenum/nnrp";
import { createProfileClient, type ProfileClient } from "@plenum/profile";
import { connectProblem } from "./errors.ts";

/** A place for one operation in an open session. */
export interface Place {
  readonly client: ProfileClient;
  /** Gives the place to the next one. */
  release(): void;
}

interface OpenSession {
  readonly session: ClientSession;
  readonly client: ProfileClient;
  taken: number;
}

export interface LinkOptions {
  readonly connect: () => Promise<ClientConnection>;
  readonly authorization: string | undefined;
  /** The connection ended without this side's will. */
  readonly onLost: (error: NnrpError) => void;
}

/**
 * One connection to the service with as many sessions as its operations need: each session takes as many operations as
 * the service granted it, then another one is opened; where the service refuses that, operations wait for a place.
 */
export class Link {
  readonly #options: LinkOptions;
  #connection: ClientConnection | undefined;
  #connecting: Promise<ClientConnection> | undefined;
  #sessions: OpenSession[] = [];
  #isOpening = false;
  /** The service refused a session beside so many. */
  #mostSessions = Number.POSITIVE_INFINITY;
  /** Callers that look again when something has changed. */
  #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Operations that hold a place. */
  get taken(): number {
    return this.#sessions.reduce((sum, { taken }) => sum + taken, 0);
  }

  /**
   * A place in a session, which is opened where need be.
   * @throws CoreError backend-unavailable, backend-error, overloaded; the signal's reason
   */
  async take(signal: AbortSignal): Promise<Place> {
    for (;;) {
      signal.throwIfAborted();
      const free = this.#sessions.find(({ session, taken }) => !session.isClosed && taken < session.maxInFlight);
      if (free !== undefined) return this.#occupy(free);
      if (this.#isOpening || this.#sessions.length >= this.#mostSessions) await this.#change(signal);
      else await beforeAbort(this.#open(), signal);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = (await this.#connecting?.catch(() => undefined)) ?? this.#connection;
    await connection?.close();
    this.#wake();
  }

  /** Ends a connection that does not answer. */
  drop(): void {
    this.#connection?.destroy();
  }

  #occupy(open: OpenSession): Place {
    open.taken += 1;
    let isHeld = true;
    return {
      client: open.client,
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        open.taken -= 1;
        this.#wake();
      },
    };
  }

  async #open(): Promise<void> {
    this.#isOpening = true;
    try {
      const connection = await this.#connect();
      const session = await connection.openSession();
      this.#add(session);
    } catch (error) {
      const hasOthers = this.#sessions.length > 0;
      if (error instanceof NnrpError && error.code === "session-rejected" && hasOthers) {
        this.#mostSessions = this.#sessions.length;
      } else throw connectProblem(error);
    } finally {
      this.#isOpening = false;
      this.#wake();
    }
  }

  #add(session: ClientSession): void {
    const { authorization } = this.#options;
    const client = createProfileClient(session, authorization === undefined ? {} : { authorization });
    const open: OpenSession = { session, client, taken: 0 };
    this.#sessions.push(open);
    void session.closed.then(() => {
      this.#sessions = this.#sessions.filter((other) => other !== open);
      this.#wake();
    });
  }

  async #connect(): Promise<ClientConnection> {
    if (this.#isClosed) throw new NnrpError("connection-closed", "The backend was closed");
    if (this.#connection !== undefined && !this.#connection.isClosed) return this.#connection;
    this.#connecting ??= this.#options.connect().finally(() => {
      this.#connecting = undefined;
    });
    const connection = await this.#connecting;
    if (this.#isClosed) throw new NnrpError("connection-closed", "The backend was closed");
    this.#connection = connection;
    this.#mostSessions = Number.POSITIVE_INFINITY;
    void connection.closed.then((error) => {
      if (error !== undefined && !this.#isClosed) this.#options.onLost(error);
    });
    return connection;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) each();
  }

  #change(signal: AbortSignal): Promise<void> {
    return beforeAbort(new Promise((resolve) => this.#waiting.push(resolve)), signal);
  }
}

/** Waits for work that others may need too, but not beyond the signal. */
function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
