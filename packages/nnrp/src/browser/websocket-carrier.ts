import { parseEndpoint } from "../endpoint/endpoint.ts";
import type { Carrier, CarrierReceiver } from "../session/carrier.ts";
import type { ClientOptions } from "../session/client/types.ts";
import { NnrpError } from "../session/errors.ts";
import { defaultClientLimits } from "../session/limits.ts";

const unsupportedData = 3003;

/** @throws {TypeError} No `ws` or `wss` address. @throws {NnrpError} `connect-failed`, `cancelled`. */
export function openWebSocket(endpoint: string, options: ClientOptions): Promise<Carrier> {
  const parsed = parseEndpoint(endpoint);
  if (parsed.kind === "application" || parsed.locator.carrier !== "websocket") {
    throw new TypeError("A browser connects to ws:// or wss:// only");
  }
  const { secure, host } = parsed.locator;
  const { connectMs } = { ...defaultClientLimits, ...options.limits };
  const { signal } = options;
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(endpoint);
    webSocket.binaryType = "arraybuffer";
    const fail = (error: NnrpError): void => {
      settle();
      webSocket.close();
      reject(error);
    };
    const giveUp = () => fail(new NnrpError("cancelled", "Connecting was given up", { cause: signal?.reason }));
    const timer = setTimeout(() => fail(new NnrpError("connect-failed", `No answer in ${connectMs} ms`)), connectMs);
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
      webSocket.onopen = null;
      webSocket.onclose = null;
    };
    webSocket.onopen = () => {
      settle();
      resolve(new WebSocketCarrier(webSocket, secure, host));
    };
    webSocket.onclose = () => fail(new NnrpError("connect-failed", "The WebSocket could not be opened"));
    if (signal?.aborted) giveUp();
    else signal?.addEventListener("abort", giveUp, { once: true });
  });
}

/** A carrier over the platform's WebSocket. It cannot be paused: what nobody reads is bounded by `unreadBytes`. */
class WebSocketCarrier implements Carrier {
  readonly kind = "websocket";
  readonly framing = "message";
  readonly secure: boolean;
  readonly remote: string;
  readonly #webSocket: WebSocket;

  constructor(webSocket: WebSocket, secure: boolean, remote: string) {
    this.#webSocket = webSocket;
    this.secure = secure;
    this.remote = remote;
  }

  get bufferedBytes(): number {
    return this.#webSocket.bufferedAmount;
  }

  start(receiver: CarrierReceiver): void {
    let failure: Error | undefined;
    this.#webSocket.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (data instanceof ArrayBuffer) receiver.data(new Uint8Array(data));
      else {
        failure = new Error("A text message came where packets are binary");
        this.#webSocket.close(unsupportedData);
      }
    };
    this.#webSocket.onclose = () => receiver.ended(failure);
    if (this.#webSocket.readyState === WebSocket.CLOSED) receiver.ended();
  }

  send(bytes: Uint8Array, ends: readonly number[]): void {
    if (this.#webSocket.readyState !== WebSocket.OPEN) return;
    let from = 0;
    for (const end of ends) {
      this.#webSocket.send(bytes.slice(from, end));
      from = end;
    }
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.#webSocket.close();
  }

  destroy(): void {
    this.#webSocket.close();
  }
}
