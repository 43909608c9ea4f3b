import type { ServerResponse } from "node:http";
import type { Responder, ResponseHeaders } from "../doors/shared/door.ts";

/** An answer over a socket. Text goes out as it is written, without another layer's queue. */
export class HttpResponder implements Responder {
  readonly #raw: ServerResponse;
  readonly #baseHeaders: ResponseHeaders;
  readonly #closed = new AbortController();
  #drain: (() => void) | undefined;

  /** @param baseHeaders headers of every answer: request id, CORS. */
  constructor(raw: ServerResponse, baseHeaders: ResponseHeaders) {
    this.#raw = raw;
    this.#baseHeaders = baseHeaders;
    raw.once("close", () => {
      if (!raw.writableFinished) this.#closed.abort();
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
    this.#raw.writeHead(status, { ...this.#baseHeaders, ...headers });
    // A stream's client sees that it was accepted before the first event is there.
    if (headers["content-type"]?.startsWith("text/event-stream")) this.#raw.flushHeaders();
  }

  write(text: string): boolean {
    if (this.#raw.destroyed || this.#raw.writableEnded) return true;
    return this.#raw.write(text);
  }

  onDrain(listener: () => void): void {
    if (this.#drain !== undefined) this.#raw.off("drain", this.#drain);
    this.#drain = listener;
    this.#raw.on("drain", listener);
  }

  end(text?: string): void {
    if (this.#raw.destroyed || this.#raw.writableEnded) return;
    if (text === undefined) this.#raw.end();
    else this.#raw.end(text);
  }
}
