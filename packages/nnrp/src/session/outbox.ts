import { headerBytes, packetBytesLimit, writeHeader } from "../codec/frame.ts";
import { messages } from "../codec/messages.ts";
import { packetBytes, writePacket } from "../codec/packet.ts";
import type { AnyPacketDraft, PacketDraft } from "../codec/packet-types.ts";
import { NnrpWireError } from "../codec/wire-error.ts";
import type { Carrier } from "./carrier.ts";
import type { Clock } from "./clock.ts";

/** One write of the carrier takes at most about so many bytes; what is more goes out before the tick ends. */
const chunkBytes = 64 * 1024;
const smallestChunkBytes = 256;

const encoder = new TextEncoder();
const { number: partialNumber, metadata: partialRecord } = messages.PARTIAL_RESULT;
const partialHead = headerBytes + partialRecord.size;
const noHeader = {};

/** An operation's names on the wire, its id in two halves so that a partial needs no 64-bit arithmetic. */
export interface OperationAddress {
  readonly sessionId: number;
  readonly frameId: number;
  readonly idLow: number;
  readonly idHigh: number;
}

/**
 * Encodes packets back to back and sends what one tick made in one write. It counts what waits, here and in the
 * carrier, so that writers can stop.
 */
export class Outbox {
  readonly #carrier: Carrier;
  readonly #clock: Clock;
  readonly #framed: boolean;
  #bytes: Uint8Array | undefined;
  #view: DataView | undefined;
  #from = 0;
  #at = 0;
  #ends: number[] = [];
  #scheduled = false;
  #lastTickBytes = 0;
  #tickBytes = 0;

  constructor(carrier: Carrier, clock: Clock) {
    this.#carrier = carrier;
    this.#clock = clock;
    this.#framed = carrier.framing === "message";
  }

  /** Bytes that the platform has not taken yet. */
  get waitingBytes(): number {
    return this.#at - this.#from + this.#carrier.bufferedBytes;
  }

  /** @throws {NnrpWireError} `bad-value`, `too-large`. */
  write(draft: AnyPacketDraft): void {
    const length = packetBytes(draft as PacketDraft);
    const { bytes, view } = this.#room(length);
    this.#commit(writePacket(bytes, view, this.#at, draft as PacketDraft));
  }

  /** PARTIAL_RESULT, the packet there are most of. Text becomes UTF-8 in place. */
  partial(to: OperationAddress, sequence: number, delta: number, flags: number, text: Uint8Array | string): void {
    const body = typeof text === "string" && text.length > chunkBytes ? encoder.encode(text) : text;
    const most = typeof body === "string" ? body.length * 3 : body.byteLength;
    if (most === 0) throw new NnrpWireError("bad-value", "A partial result needs a body", "bodyBytes");
    if (partialHead + most > packetBytesLimit) throw new NnrpWireError("too-large", "A partial result is too large");
    const { bytes, view } = this.#room(partialHead + most);
    const start = this.#at;
    const bodyStart = start + partialHead;
    const length = typeof body === "string" ? encodeInto(bytes, bodyStart, body) : body.byteLength;
    if (typeof body !== "string") bytes.set(body, bodyStart);
    writeHeader(view, start, partialNumber, partialRecord.size, length, noHeader);
    view.setUint32(start + 20, to.sessionId, true);
    view.setUint32(start + 24, to.frameId, true);
    const meta = start + headerBytes;
    view.setUint32(meta, to.idLow, true);
    view.setUint32(meta + 4, to.idHigh, true);
    writeCount(view, meta + 8, sequence);
    writeCount(view, meta + 24, delta);
    view.setUint32(meta + 32, length, true);
    view.setUint32(meta + 36, flags, true);
    this.#commit(bodyStart + length);
  }

  /** Hands everything encoded to the carrier. */
  flush(): void {
    const bytes = this.#bytes;
    if (bytes === undefined || this.#at === this.#from) return;
    const ends = this.#ends;
    const part = this.#from === 0 && this.#at === bytes.byteLength ? bytes : bytes.subarray(this.#from, this.#at);
    this.#ends = [];
    this.#from = this.#at;
    this.#carrier.send(part, ends);
  }

  #room(length: number): { bytes: Uint8Array; view: DataView } {
    let bytes = this.#bytes;
    let view = this.#view;
    if (bytes === undefined || view === undefined || bytes.byteLength - this.#at < length) {
      this.flush();
      const guess = Math.max(this.#lastTickBytes, this.#tickBytes * 2, smallestChunkBytes);
      bytes = new Uint8Array(Math.max(length, Math.min(guess, chunkBytes)));
      view = new DataView(bytes.buffer);
      this.#bytes = bytes;
      this.#view = view;
      this.#from = 0;
      this.#at = 0;
    }
    return { bytes, view };
  }

  #commit(end: number): void {
    this.#tickBytes += end - this.#at;
    this.#at = end;
    if (this.#framed) this.#ends.push(end - this.#from);
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#clock.soon(this.#endTick);
    }
  }

  /** An idle connection keeps no chunk. */
  readonly #endTick = (): void => {
    this.#scheduled = false;
    this.flush();
    this.#lastTickBytes = Math.min(this.#tickBytes, chunkBytes);
    this.#tickBytes = 0;
    this.#bytes = undefined;
    this.#view = undefined;
    this.#from = 0;
    this.#at = 0;
  };
}

function encodeInto(bytes: Uint8Array, at: number, text: string): number {
  return encoder.encodeInto(text, bytes.subarray(at)).written;
}

/** A count below 2^53 in 64 bits. */
function writeCount(view: DataView, at: number, count: number): void {
  view.setUint32(at, count >>> 0, true);
  view.setUint32(at + 4, Math.floor(count / 0x1_0000_0000), true);
}
