import { encodeBody, eventPayload } from "../../codec/body-regions.ts";
import { FrameDecoder, readMessage } from "../../codec/decoder.ts";
import type { Frame } from "../../codec/frame.ts";
import type { MessageName } from "../../codec/messages.ts";
import { decodePacket, encodePacket } from "../../codec/packet.ts";
import type { AnyPacket, AnyPacketDraft, Packet } from "../../codec/packet-types.ts";
import type { Carrier } from "../carrier.ts";

/** The other end of a carrier, without any rules: it sends what it is told and keeps what comes. */
export class RawPeer {
  readonly #carrier: Carrier;
  readonly #received: AnyPacket[] = [];
  readonly #decoder = new FrameDecoder();
  #ended = false;
  #wake: () => void = () => {};

  constructor(carrier: Carrier) {
    this.#carrier = carrier;
    const take = (frame: Frame) => {
      this.#received.push(decodePacket(frame));
      this.#wake();
      return true;
    };
    carrier.start({
      data: (bytes) => (carrier.framing === "message" ? take(readMessage(bytes)) : this.#decoder.push(bytes, take)),
      drained() {},
      ended: () => {
        this.#ended = true;
        this.#wake();
      },
    });
  }

  bytes(bytes: Uint8Array): void {
    this.#carrier.send(bytes, [bytes.byteLength]);
  }

  send(...drafts: readonly AnyPacketDraft[]): void {
    for (const draft of drafts) this.bytes(encodePacket(draft));
  }

  pause(): void {
    this.#carrier.pause();
  }

  resume(): void {
    this.#carrier.resume();
  }

  close(): void {
    this.#carrier.close();
  }

  /** The next packet; undefined when the carrier ended before one came. */
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

  /** The next packet, which has to be of this kind. */
  async expect<N extends MessageName>(type: N): Promise<Packet<N>> {
    const packet = await this.next();
    if (packet?.type !== type) throw new Error(`${packet?.type ?? "the end"} came instead of ${type}`);
    return packet as Packet<N>;
  }

  /** Resolves when the carrier ended; packets before it are dropped. */
  async ended(): Promise<void> {
    while ((await this.next()) !== undefined);
  }

  /** What has come by now. */
  get waiting(): readonly MessageName[] {
    return this.#received.map(({ type }) => type);
  }

  async hello(): Promise<void> {
    this.send(hello);
    await this.expect("SERVER_HELLO_ACK");
  }

  /** Hello and one session; answers its id. */
  async open(further: object = {}): Promise<number> {
    await this.hello();
    return this.openSession(further);
  }

  async openSession(further: object = {}): Promise<number> {
    this.send(sessionOpen(further));
    return (await this.expect("SESSION_OPEN_ACK")).sessionId;
  }
}

/** As other implementations send it. */
export const hello = {
  type: "CLIENT_HELLO",
  metadata: {
    minVersionMajor: 1,
    maxVersionMajor: 1,
    supportedWireFormatBitmap: 1,
    supportedProfileBitmap: 3,
    supportedPayloadKindBitmap: 0x73,
    maxLaneCount: 1,
    latencyBudgetMs: 500,
  },
} as const satisfies AnyPacketDraft;

export const sessionOpen = (further: object = {}): AnyPacketDraft => ({
  type: "SESSION_OPEN",
  metadata: {
    profileId: 2,
    priorityClass: 1,
    schemaId: 0x1001,
    schemaVersion: 3,
    defaultDeadlineMs: 500,
    maxInFlightOperations: 4,
    leaseTtlHintMs: 30_000,
    ...further,
  },
});

/** A submit of one event. */
export const submit = (sessionId: number, id: number, further: object = {}): AnyPacketDraft => ({
  type: "FRAME_SUBMIT",
  sessionId,
  frameId: id,
  metadata: {
    operationId: BigInt(id + 100),
    tileIndexMode: 1,
    lossTolerancePolicy: 255,
    payloadKindBitmap: 16,
    payloadFrameCount: 1,
    ...further,
  },
  body: encodeBody({ payloads: [eventPayload(new TextEncoder().encode('{"ask":1}'))] }),
});
