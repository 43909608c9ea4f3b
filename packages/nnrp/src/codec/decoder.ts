import { Frame, headerBytes, packetBytesLimit, readType } from "./frame.ts";
import { NnrpWireError } from "./wire-error.ts";

/** Room that a packet split over several chunks starts with; it grows with what really arrives. */
const firstRoomBytes = 1024;

/**
 * Cuts a byte stream into frames: bytes go in as they come, split or joined in any way; frames come out. A frame that
 * lies within one chunk is a view into it, without a copy. What is kept between chunks grows with the bytes received,
 * never with a length that was only declared.
 */
export class FrameDecoder {
  /** The largest packet that is accepted; may be changed between packets. */
  frameBytesLimit: number;
  #pending: Uint8Array | undefined;
  #pendingBytes = 0;
  /** The whole packet's length once its header is there, else the header's. */
  #wantedBytes = headerBytes;

  constructor(frameBytesLimit = packetBytesLimit) {
    this.frameBytesLimit = frameBytesLimit;
  }

  /** Bytes of a packet that is not complete. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /**
   * Takes bytes and hands on every frame that is complete. `receive` may answer false to stop early; the rest of the
   * chunk is then dropped.
   *
   * @throws {NnrpWireError} a fatal one (`bad-header`, `unknown-type`, `too-large`): nothing after it can be read.
   */
  push(chunk: Uint8Array, receive: (frame: Frame) => boolean | undefined): void {
    let at = 0;
    while (this.#pending !== undefined) {
      at = this.#fill(this.#pending, chunk, at);
      if (this.#pendingBytes < this.#wantedBytes) return;
      const bytes = this.#pending;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (this.#wantedBytes === headerBytes) {
        this.#wantedBytes = this.#packetLength(view, 0);
        if (this.#wantedBytes > headerBytes) continue;
      }
      this.#forget();
      if (receive(new Frame(bytes, view, 0)) === false) return;
    }
    if (at < chunk.byteLength) this.#read(chunk, at, receive);
  }

  /** Reads whole frames out of the chunk, and keeps the beginning of the next. */
  #read(chunk: Uint8Array, from: number, receive: (frame: Frame) => boolean | undefined): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = from;
    while (chunk.byteLength - at >= headerBytes) {
      const length = this.#packetLength(view, at);
      if (chunk.byteLength - at < length) {
        this.#keep(chunk, at, length);
        return;
      }
      if (receive(new Frame(chunk, view, at)) === false) return;
      at += length;
    }
    if (at < chunk.byteLength) this.#keep(chunk, at, headerBytes);
  }

  #packetLength(view: DataView, at: number): number {
    readType(view, at);
    const length = headerBytes + view.getUint32(at + 12, true) + view.getUint32(at + 16, true);
    if (length > this.frameBytesLimit) {
      throw new NnrpWireError("too-large", `A packet of ${length} bytes is over ${this.frameBytesLimit}`, "body_len");
    }
    return length;
  }

  #keep(chunk: Uint8Array, from: number, wanted: number): void {
    const rest = chunk.byteLength - from;
    this.#pending = new Uint8Array(Math.min(wanted, Math.max(firstRoomBytes, rest)));
    this.#pending.set(chunk.subarray(from));
    this.#pendingBytes = rest;
    this.#wantedBytes = wanted;
  }

  /** Moves as much of the chunk as is wanted behind what is kept. */
  #fill(pending: Uint8Array, chunk: Uint8Array, from: number): number {
    const taken = Math.min(this.#wantedBytes - this.#pendingBytes, chunk.byteLength - from);
    const needed = this.#pendingBytes + taken;
    let room = pending;
    if (room.byteLength < needed) {
      room = new Uint8Array(Math.min(this.#wantedBytes, Math.max(needed, room.byteLength * 2)));
      room.set(pending.subarray(0, this.#pendingBytes));
      this.#pending = room;
    }
    room.set(chunk.subarray(from, from + taken), this.#pendingBytes);
    this.#pendingBytes = needed;
    return from + taken;
  }

  #forget(): void {
    this.#pending = undefined;
    this.#pendingBytes = 0;
    this.#wantedBytes = headerBytes;
  }
}

/** Reads a message that must be exactly one packet. @throws {NnrpWireError} a fatal one. */
export function readMessage(bytes: Uint8Array, frameBytesLimit = packetBytesLimit): Frame {
  if (bytes.byteLength < headerBytes) throw new NnrpWireError("bad-message", "The message is shorter than a header");
  if (bytes.byteLength > frameBytesLimit) {
    throw new NnrpWireError(
      "too-large",
      `A packet of ${bytes.byteLength} bytes is over ${frameBytesLimit}`,
      "body_len",
    );
  }
  const frame = new Frame(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
  if (frame.byteLength !== bytes.byteLength) {
    throw new NnrpWireError("bad-message", `The message has ${bytes.byteLength} bytes, its packet ${frame.byteLength}`);
  }
  return frame;
}
