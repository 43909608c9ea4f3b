import type { ServerResponse } from "node:http";
import { Closing } from "../doors/shared/closing.ts";
import type { Responder, ResponseHeaders } from "../doors/shared/door.ts";
import { onSocketClose, type WatchedSocket } from "./socket-watch.ts";

export interface HttpResponderOptions {
  readonly raw: ServerResponse;
  readonly socket: WatchedSocket;
  /** Headers of every answer, each name before its value: request id, CORS. */
  readonly baseHeaders: readonly string[];
  /** Milliseconds that a client may take nothing of its stream before its connection is closed; 0: for ever. */
  readonly stallTimeoutMs: number;
}

/** An answer over a socket. Text goes out as it is written, without another layer's queue. */
export class HttpResponder implements Responder {
  readonly #options: HttpResponderOptions;
  readonly #raw: ServerResponse;
  readonly #closing = new Closing();
  #drain: (() => void) | undefined;
  #stallTimer: NodeJS.Timeout | undefined;
  /** The body's chunks are framed here. */
  #isFramed = false;

  constructor(options: HttpResponderOptions) {
    const { raw, socket } = options;
    this.#options = options;
    this.#raw = raw;
    const onClose = (): void => {
      clearTimeout(this.#stallTimer);
      forget();
      if (!raw.writableFinished) this.#closing.close();
    };
    // An answer that waits behind another one of its connection has no socket of its own yet, and hears nothing.
    const forget = onSocketClose(socket, onClose);
    raw.once("close", onClose);
    // A write to a socket that the client has reset; `close` follows and says so.
    raw.on("error", ignore);
  }

  get isClosed(): boolean {
    return this.#closing.isClosed;
  }

  onClosed(listener: () => void): () => void {
    return this.#closing.onClosed(listener);
  }

  get hasStarted(): boolean {
    return this.#raw.headersSent;
  }

  start(status: number, headers: ResponseHeaders): void {
    const raw = this.#raw;
    if (raw.destroyed) return;
    const isEventStream = headers["content-type"]?.startsWith("text/event-stream") ?? false;
    // node:http frames a chunk in four pieces, which the socket gathers again; one text leaves as it is.
    this.#isFramed = raw.useChunkedEncodingByDefault && (isEventStream || headers["content-type"] === ndjson);
    const lines = [...this.#options.baseHeaders];
    for (const [name, value] of Object.entries(headers)) lines.push(name, value);
    if (this.#isFramed) lines.push("transfer-encoding", "chunked");
    raw.writeHead(status, lines);
    if (this.#isFramed) raw.chunkedEncoding = false;
    // A stream's client sees that it was accepted before the first event is there.
    if (isEventStream) raw.flushHeaders();
  }

  write(text: string): boolean {
    if (this.#raw.destroyed || this.#raw.writableEnded || text === "") return true;
    const isTaken = this.#raw.write(this.#isFramed ? chunk(text) : text);
    if (!isTaken) this.#watchTaking();
    return isTaken;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  end(text = ""): void {
    const raw = this.#raw;
    if (raw.destroyed || raw.writableEnded) return;
    if (this.#isFramed) raw.end(text === "" ? lastChunk : chunk(text) + lastChunk);
    else if (text === "") raw.end();
    else if (text.length > pieceBytes) this.#endInPieces(Buffer.from(text));
    else raw.end(text);
    this.#watchLeaving();
  }

  cut(): void {
    this.#options.socket.destroy();
  }

  /** A long answer leaves piece by piece, which shows that its client takes it, however slowly. */
  #endInPieces(body: Buffer): void {
    const raw = this.#raw;
    if (body.length <= pieceBytes) {
      raw.end(body);
      this.#watchLeaving();
      return;
    }
    this.#drain = () => this.#endInPieces(body.subarray(pieceBytes));
    if (raw.write(body.subarray(0, pieceBytes))) this.#drain();
    else this.#watchTaking();
  }

  /** What is left in the socket's buffer must be taken in time, too. */
  #watchLeaving(): void {
    const raw = this.#raw;
    if (!raw.writableFinished && raw.writableLength > 0) this.#watchStall();
  }

  #watchTaking(): void {
    this.#watchDrain();
    this.#watchStall();
  }

  #watchDrain(): void {
    this.#raw.once("drain", () => {
      clearTimeout(this.#stallTimer);
      this.#drain?.();
    });
  }

  #watchStall(): void {
    const { stallTimeoutMs, socket } = this.#options;
    clearTimeout(this.#stallTimer);
    if (stallTimeoutMs === 0) return;
    // While an answer waits behind another one of its connection, nothing is for its client to take.
    if (this.#raw.socket === null) this.#raw.once("socket", () => this.#watchStall());
    else this.#stallTimer = setTimeout(() => socket.destroy(), stallTimeoutMs).unref();
  }
}

/** Bytes of a long answer that its client must take within the time to stall. */
const pieceBytes = 1024 * 1024;
const ndjson = "application/x-ndjson";
/** RFC 9112 §7.1 */
const lastChunk = "0\r\n\r\n";

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function ignore(): void {}
