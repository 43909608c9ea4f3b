import type { ServerResponse } from "node:http";
import type { Responder, ResponseHeaders } from "../doors/shared/door.ts";
import { onSocketClose, type WatchedSocket } from "./socket-watch.ts";

export interface HttpResponderOptions {
  readonly raw: ServerResponse;
  readonly socket: WatchedSocket;
  /** Headers of every answer: request id, CORS. */
  readonly baseHeaders: ResponseHeaders;
  /** Milliseconds that a client may take nothing of its stream before its connection is closed; 0: for ever. */
  readonly stallTimeoutMs: number;
}

/** An answer over a socket. Text goes out as it is written, without another layer's queue. */
export class HttpResponder implements Responder {
  readonly #options: HttpResponderOptions;
  readonly #raw: ServerResponse;
  readonly #closed = new AbortController();
  #drain: () => void = () => {};
  #stallTimer: NodeJS.Timeout | undefined;

  constructor(options: HttpResponderOptions) {
    const { raw, socket } = options;
    this.#options = options;
    this.#raw = raw;
    const onClose = (): void => {
      clearTimeout(this.#stallTimer);
      forget();
      if (!raw.writableFinished) this.#closed.abort();
    };
    // An answer that waits behind another one of its connection has no socket of its own yet, and hears nothing.
    const forget = onSocketClose(socket, onClose);
    raw.once("close", onClose);
    raw.on("drain", () => {
      clearTimeout(this.#stallTimer);
      this.#drain();
    });
    // A write to a socket that the client has reset; `close` follows and says so.
    raw.on("error", () => {});
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get hasStarted(): boolean {
    return this.#raw.headersSent;
  }

  start(status: number, headers: ResponseHeaders): void {
    if (this.#raw.destroyed) return;
    this.#raw.writeHead(status, { ...this.#options.baseHeaders, ...headers });
    // A stream's client sees that it was accepted before the first event is there.
    if (headers["content-type"]?.startsWith("text/event-stream")) this.#raw.flushHeaders();
  }

  write(text: string): boolean {
    if (this.#raw.destroyed || this.#raw.writableEnded) return true;
    const isTaken = this.#raw.write(text);
    if (!isTaken) this.#watchStall();
    return isTaken;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  end(text?: string): void {
    if (this.#raw.destroyed || this.#raw.writableEnded) return;
    if (text === undefined) this.#raw.end();
    else this.#raw.end(text);
    // What is left in the socket's buffer must be taken in time, too.
    if (!this.#raw.writableFinished) this.#watchStall();
  }

  #watchStall(): void {
    const { stallTimeoutMs, socket } = this.#options;
    clearTimeout(this.#stallTimer);
    if (stallTimeoutMs === 0) return;
    this.#stallTimer = setTimeout(() => socket.destroy(), stallTimeoutMs).unref();
    this.#raw.once("finish", () => clearTimeout(this.#stallTimer));
  }
}
