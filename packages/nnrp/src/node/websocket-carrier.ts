import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Carrier, CarrierInfo, CarrierReceiver } from "../session/carrier.ts";
import { frameMessages } from "./websocket-frames.ts";

/** Other implementations take WebSocket frames up to 16 MiB; a larger packet is sent in several. */
const webSocketFrameBytes = 16 * 1024 * 1024;
const unsupportedData = 1003;
const options = { binary: true, compress: false, fin: true };
const partOptions = { ...options, fin: false };

/** A carrier over a WebSocket of `ws`: one packet is one binary message. */
export class WebSocketCarrier implements Carrier {
  readonly kind = "websocket";
  readonly secure: boolean;
  readonly remote: string;
  readonly upgrade?: NonNullable<CarrierInfo["upgrade"]>;
  readonly attachment: unknown;
  readonly framing = "message";
  readonly #webSocket: WebSocket;
  /** A server's side: the socket below, which takes the messages of one tick in one write. A client masks each. */
  readonly #socket: Socket | undefined;
  #receiver: CarrierReceiver | undefined;

  constructor(webSocket: WebSocket, socket: Socket | undefined, info: Omit<CarrierInfo, "kind">) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.secure = info.secure;
    this.remote = info.remote;
    if (info.upgrade !== undefined) this.upgrade = info.upgrade;
    this.attachment = info.attachment;
  }

  get bufferedBytes(): number {
    return this.#webSocket.bufferedAmount;
  }

  start(receiver: CarrierReceiver): void {
    this.#receiver = receiver;
    let failure: Error | undefined;
    this.#webSocket
      .on("message", (data, isBinary) => {
        if (isBinary && data instanceof Uint8Array) receiver.data(data);
        else {
          failure = new Error("A text message came where packets are binary");
          this.#webSocket.close(unsupportedData);
        }
      })
      .on("error", (error) => {
        failure = error;
      })
      .on("close", () => receiver.ended(failure));
    this.#socket?.on("drain", this.#sent);
    if (this.#webSocket.readyState === this.#webSocket.CLOSED) receiver.ended();
  }

  send(bytes: Uint8Array, ends: readonly number[]): void {
    if (this.#webSocket.readyState !== this.#webSocket.OPEN) return;
    if (this.#socket !== undefined && bytes.byteLength <= webSocketFrameBytes) {
      this.#socket.write(frameMessages(bytes, ends));
      return;
    }
    let from = 0;
    for (const end of ends) {
      for (; end - from > webSocketFrameBytes; from += webSocketFrameBytes) {
        this.#webSocket.send(bytes.subarray(from, from + webSocketFrameBytes), partOptions);
      }
      this.#webSocket.send(bytes.subarray(from, end), options, end === bytes.byteLength ? this.#sent : undefined);
      from = end;
    }
  }

  readonly #sent = (): void => {
    if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#receiver?.drained();
  };

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  close(code?: number): void {
    this.#webSocket.resume();
    this.#webSocket.close(code);
  }

  destroy(): void {
    this.#webSocket.terminate();
  }
}
