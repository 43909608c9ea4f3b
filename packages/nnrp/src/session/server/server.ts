import type { Carrier } from "../carrier.ts";
import { type Clock, systemClock } from "../clock.ts";
import { defaultServerLimits, type ServerLimits } from "../limits.ts";
import { Connection, type ConnectionHost } from "./connection.ts";
import { ResumableSessions } from "./resume.ts";
import type { NnrpServer, ServerHandler, ServerOptions } from "./types.ts";

/** How often connections are looked at for handshakes, idleness and stalls, at most. */
const checkMs = 1000;

/** How long `close` waits for carriers to end, the bytes they still hold included. */
const closeMs = 5000;

/**
 * Creates a server. It holds no socket: `accept` takes carriers, and `listen` of `@plenum/nnrp/node` makes them.
 *
 * @throws {RangeError} A limit is not a number from 0.
 */
export function createServer(handler: ServerHandler, options: ServerOptions = {}): NnrpServer {
  const limits = { ...defaultServerLimits, ...options.limits };
  for (const [name, value] of Object.entries(limits)) {
    if (!(value >= 0)) throw new RangeError(`The limit ${name} must be a number from 0`);
  }
  return new Server(handler, limits, options);
}

class Server implements NnrpServer, ConnectionHost {
  readonly handler: ServerHandler;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly acceptAuthBlocks: boolean;
  readonly resumable: ResumableSessions;
  closing = false;
  readonly #connections = new Set<Connection>();
  #nextId = 1;
  #checking = false;
  #whenEmpty: (() => void) | undefined;
  #whenIdle: (() => void) | undefined;

  constructor(handler: ServerHandler, limits: ServerLimits, options: ServerOptions) {
    this.handler = handler;
    this.limits = limits;
    this.clock = options.clock ?? systemClock;
    this.acceptAuthBlocks = options.acceptAuthBlocks ?? false;
    this.resumable = new ResumableSessions(this.clock, limits);
  }

  get connections(): number {
    return this.#connections.size;
  }

  get sessions(): number {
    return this.#sum((connection) => connection.sessions);
  }

  get operations(): number {
    return this.#sum((connection) => connection.operations);
  }

  #sum(of: (connection: Connection) => number): number {
    let sum = 0;
    for (const connection of this.#connections) sum += of(connection);
    return sum;
  }

  accept(carrier: Carrier): void {
    const connection = new Connection(this, carrier, this.#nextId);
    this.#nextId += 1;
    if (this.closing || this.#connections.size >= this.limits.connections) {
      connection.log("connection-refused", this.closing ? "closing" : "too many connections");
      carrier.destroy();
      return;
    }
    this.#connections.add(connection);
    connection.start();
    this.#checkLater();
  }

  failed(error: unknown): void {
    if (this.handler.failed !== undefined) this.handler.failed(error);
    else {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  ended(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#whenEmpty?.();
  }

  operationEnded(): void {
    if (this.closing && this.operations === 0) this.#whenIdle?.();
  }

  #checkLater(): void {
    if (this.#checking) return;
    this.#checking = true;
    const { handshakeMs, idleMs, stallMs } = this.limits;
    this.clock.after(Math.max(1, Math.min(checkMs, handshakeMs / 4, idleMs / 4, stallMs / 4)), () => {
      this.#checking = false;
      const now = this.clock.now();
      for (const connection of [...this.#connections]) connection.check(now);
      this.resumable.forgetExpired();
      if (this.#connections.size > 0 || this.resumable.size > 0) this.#checkLater();
    });
  }

  async close(options: { readonly drainMs?: number } = {}): Promise<void> {
    this.closing = true;
    const drainMs = options.drainMs ?? 0;
    if (drainMs > 0 && this.operations > 0) {
      await new Promise<void>((resolve) => {
        const cancel = this.clock.after(drainMs, resolve);
        this.#whenIdle = () => {
          cancel();
          resolve();
        };
      });
    }
    for (const connection of [...this.#connections]) {
      connection.stopAll({ kind: "server-closing" });
      connection.close();
    }
    this.resumable.clear();
    if (this.#connections.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.clock.after(closeMs, () => {
        for (const connection of [...this.#connections]) connection.destroy();
        resolve();
      });
      this.#whenEmpty = () => {
        cancel();
        resolve();
      };
    });
  }
}
