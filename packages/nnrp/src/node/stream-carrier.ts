import type { Socket } from "node:net";
import type { Carrier, CarrierReceiver } from "../session/carrier.ts";

/** A carrier over a byte stream: TCP, TLS, a Unix socket, a named pipe. */
export class StreamCarrier implements Carrier {
  readonly kind: "tcp" | "ipc";
  readonly secure: boolean;
  readonly remote: string;
  readonly framing = "stream";
  readonly attachment: unknown;
  readonly #socket: Socket;

  constructor(socket: Socket, kind: "tcp" | "ipc", secure: boolean, remote: string) {
    this.#socket = socket;
    this.kind = kind;
    this.secure = secure;
    this.remote = remote;
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  start(receiver: CarrierReceiver): void {
    let failure: Error | undefined;
    this.#socket
      .on("data", (bytes: Uint8Array) => receiver.data(bytes))
      .on("drain", () => receiver.drained())
      .on("error", (error) => {
        failure = error;
      })
      .on("close", () => receiver.ended(failure));
    if (this.#socket.destroyed) receiver.ended();
  }

  send(bytes: Uint8Array): void {
    if (!this.#socket.destroyed && !this.#socket.writableEnded) this.#socket.write(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    // The end of the other side is only seen by reading on.
    this.#socket.resume();
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
