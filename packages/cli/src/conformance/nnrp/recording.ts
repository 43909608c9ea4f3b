import {
  type AnyPacket,
  type Carrier,
  type CarrierReceiver,
  decodePacket,
  type Frame,
  FrameDecoder,
  headerBytes,
  NnrpWireError,
  readMessage,
} from "@plenum/nnrp";

export interface RecordedPacket {
  readonly direction: "sent" | "received";
  /** A copy, with secrets overwritten. */
  readonly bytes: Uint8Array;
  /** Undefined where it could not be read, or when secrets were overwritten so that it is not to be. */
  readonly packet: AnyPacket | undefined;
  /** What is wrong with it. */
  readonly fault: string | undefined;
}

export interface RecordingOptions {
  /** Overwritten wherever it is sent. */
  readonly secret?: string;
  /** Most bytes kept; a peer that sends more is cut off. @default 64 MiB */
  readonly bytesLimit?: number;
}

const mebibyte = 1024 * 1024;

/** What went over one carrier, packet by packet, as the peer sent it: no tolerance of the library stands before it. */
export class Recording {
  readonly packets: RecordedPacket[] = [];
  readonly #secret: Uint8Array;
  readonly #bytesLimit: number;
  #bytes = 0;

  constructor({ secret = "", bytesLimit = 64 * mebibyte }: RecordingOptions = {}) {
    this.#secret = new TextEncoder().encode(secret);
    this.#bytesLimit = bytesLimit;
  }

  /** The same carrier, watched. */
  watch(carrier: Carrier): Carrier {
    return new WatchedCarrier(carrier, this);
  }

  /** @returns false when it is too much. */
  received(frame: Uint8Array): boolean {
    this.#keep("received", frame);
    return this.#bytes <= this.#bytesLimit;
  }

  sent(frame: Uint8Array): undefined {
    this.#keep("sent", frame);
  }

  /** What can't be cut into packets; nothing after it can. */
  unreadable(fault: string): void {
    this.packets.push({ direction: "received", bytes: new Uint8Array(0), packet: undefined, fault });
  }

  #keep(direction: RecordedPacket["direction"], frame: Uint8Array): void {
    const bytes = frame.slice();
    this.#bytes += bytes.byteLength;
    if (direction === "sent") overwrite(bytes, this.#secret);
    try {
      this.packets.push({ direction, bytes, packet: decodePacket(readMessage(bytes)), fault: undefined });
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.packets.push({ direction, bytes, packet: undefined, fault: error.message });
    }
  }
}

/** With as many other bytes, so that every length stays true. */
function overwrite(bytes: Uint8Array, secret: Uint8Array): void {
  if (secret.byteLength === 0) return;
  const haystack = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = haystack.indexOf(secret); at >= 0; at = haystack.indexOf(secret, at + 1)) {
    haystack.fill("x", at, at + secret.byteLength);
  }
}

class WatchedCarrier implements Carrier {
  readonly #carrier: Carrier;
  readonly #recording: Recording;
  readonly #decoder = new FrameDecoder();
  readonly #sentDecoder = new FrameDecoder();
  #isReadable = true;

  constructor(carrier: Carrier, recording: Recording) {
    this.#carrier = carrier;
    this.#recording = recording;
  }

  get kind() {
    return this.#carrier.kind;
  }

  get secure() {
    return this.#carrier.secure;
  }

  get remote() {
    return this.#carrier.remote;
  }

  get framing() {
    return this.#carrier.framing;
  }

  get bufferedBytes() {
    return this.#carrier.bufferedBytes;
  }

  start(receiver: CarrierReceiver): void {
    this.#carrier.start({
      data: (bytes) => {
        this.#read(bytes);
        receiver.data(bytes);
      },
      drained: () => receiver.drained(),
      ended: (error) => receiver.ended(error),
    });
  }

  send(bytes: Uint8Array, ends: readonly number[]): void {
    if (this.framing === "message") {
      let start = 0;
      for (const end of ends) {
        this.#recording.sent(bytes.subarray(start, end));
        start = end;
      }
    } else this.#noteStream(bytes);
    this.#carrier.send(bytes, ends);
  }

  pause(): void {
    this.#carrier.pause();
  }

  resume(): void {
    this.#carrier.resume();
  }

  close(code?: number): void {
    this.#carrier.close(code);
  }

  destroy(): void {
    this.#carrier.destroy();
  }

  /** What no client would send is kept as one piece. */
  #noteStream(bytes: Uint8Array): void {
    try {
      this.#sentDecoder.push(bytes, (frame) => this.#recording.sent(bytesOf(frame)));
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#recording.sent(bytes);
    }
  }

  #read(bytes: Uint8Array): void {
    if (!this.#isReadable) return;
    const take = (frame: Frame) => {
      if (this.#recording.received(bytesOf(frame))) return true;
      this.#stop("The peer sent more than is kept.");
      return false;
    };
    try {
      if (this.framing === "message") take(readMessage(bytes));
      else this.#decoder.push(bytes, take);
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#stop(error.message);
    }
  }

  #stop(fault: string): void {
    this.#isReadable = false;
    this.#recording.unreadable(fault);
    this.#carrier.destroy();
  }
}

function bytesOf({ bytes, start, byteLength }: Frame): Uint8Array {
  return bytes.subarray(start, start + byteLength);
}

/** Header, metadata and body of a packet. */
export function partsOf(bytes: Uint8Array): readonly [header: Uint8Array, metadata: Uint8Array, body: Uint8Array] {
  if (bytes.byteLength < headerBytes) return [bytes, new Uint8Array(0), new Uint8Array(0)];
  const metaLength = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(12, true);
  const bodyStart = headerBytes + metaLength;
  return [bytes.subarray(0, headerBytes), bytes.subarray(headerBytes, bodyStart), bytes.subarray(bodyStart)];
}
