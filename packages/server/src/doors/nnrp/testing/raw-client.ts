import { connect, type Socket } from "node:net";
import {
  type AnyPacket,
  type AnyPacketDraft,
  decodePacket,
  encodeBody,
  encodePacket,
  eventPayload,
  FrameDecoder,
  PayloadKind,
} from "@plenum/nnrp";

/** A client without rules: it sends what it is told and keeps what comes. */
export class RawClient {
  readonly #socket: Socket;
  readonly #received: AnyPacket[] = [];
  #ended = false;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    const decoder = new FrameDecoder();
    this.#socket.on("data", (bytes) => {
      decoder.push(bytes, (frame) => {
        this.#received.push(decodePacket(frame));
        this.#wake();
        return true;
      });
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  bytes(bytes: Uint8Array | string): void {
    this.#socket.write(bytes);
  }

  /** All of them in one write. */
  send(...drafts: readonly AnyPacketDraft[]): void {
    this.bytes(Buffer.concat(drafts.map((draft) => encodePacket(draft))));
  }

  /** Ends this side, in order. */
  end(): void {
    this.#socket.end();
  }

  /** Goes away without a word. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** The next packet; undefined when the connection ended before one came. */
  async next(): Promise<AnyPacket | undefined> {
    for (;;) {
      const packet = this.#received.shift();
      if (packet !== undefined) return packet;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Hello, as other implementations send it. */
  async hello(): Promise<void> {
    this.send(hello);
    await this.next();
  }

  /** Hello and a session; answers its id. */
  async open(): Promise<number> {
    await this.hello();
    this.send(sessionOpen());
    return (await this.next())?.sessionId ?? 0;
  }
}

export const hello = {
  type: "CLIENT_HELLO",
  metadata: {
    minVersionMajor: 1,
    maxVersionMajor: 1,
    supportedWireFormatBitmap: 1,
    supportedProfileBitmap: 3,
    supportedPayloadKindBitmap: 0x73,
    maxLaneCount: 1,
  },
} as const satisfies AnyPacketDraft;

export function sessionOpen(further: object = {}): AnyPacketDraft {
  const metadata = {
    profileId: 2,
    priorityClass: 1,
    schemaId: 0x1001,
    schemaVersion: 3,
    maxInFlightOperations: 4,
    ...further,
  };
  return { type: "SESSION_OPEN", metadata };
}

export interface SubmitParts {
  readonly sessionId: number;
  readonly id?: number;
  readonly frameId?: number;
  /** JSON text or bytes of the one structured event. */
  readonly event?: string | Uint8Array;
  /** A body as it is. */
  readonly body?: Uint8Array;
}

export function submit({ sessionId, id = 1, frameId = id, event = "", body }: SubmitParts): AnyPacketDraft {
  const bytes = typeof event === "string" ? new TextEncoder().encode(event) : event;
  return {
    type: "FRAME_SUBMIT",
    sessionId,
    frameId,
    metadata: {
      operationId: BigInt(id),
      payloadKindBitmap: PayloadKind.structuredEvent,
      payloadFrameCount: 1,
      lossTolerancePolicy: 0xff,
      tileIndexMode: 1,
    },
    body: body ?? encodeBody({ payloads: [eventPayload(bytes)] }),
  };
}
