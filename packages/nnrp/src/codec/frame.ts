import { type MessageName, messageName } from "./messages.ts";
import { NnrpWireError } from "./wire-error.ts";

/** The common header, 40 bytes. */
export const headerBytes = 40;

/** The largest packet of the protocol, header and metadata included: 64 MiB. */
export const packetBytesLimit = 64 * 1024 * 1024;

/** `NNRP`, read as a little-endian number. */
const magic = 0x50524e4e;
const versionMajor = 1;
const wireFormat = 0;
const knownFlags = 0x3f;

/** What the header says beside the lengths. */
export interface Header {
  readonly type: MessageName;
  /** Bits of `HeaderFlags`. */
  readonly flags: number;
  /** 0: connection scope. */
  readonly sessionId: number;
  /** 0: not bound to an operation. */
  readonly frameId: number;
  readonly viewId: number;
  readonly routeId: number;
  readonly traceId: bigint;
}

/** A packet's bytes with its header read, the metadata not yet. */
export class Frame implements Header {
  readonly type: MessageName;
  readonly flags: number;
  readonly sessionId: number;
  readonly frameId: number;
  readonly viewId: number;
  readonly routeId: number;
  readonly traceId: bigint;
  readonly metaLength: number;
  readonly bodyLength: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly start: number;

  /** @throws {NnrpWireError} `bad-header`, `unknown-type`. */
  constructor(bytes: Uint8Array, view: DataView, start: number) {
    this.bytes = bytes;
    this.view = view;
    this.start = start;
    this.type = readType(view, start);
    this.flags = view.getUint32(start + 8, true);
    this.metaLength = view.getUint32(start + 12, true);
    this.bodyLength = view.getUint32(start + 16, true);
    this.sessionId = view.getUint32(start + 20, true);
    this.frameId = view.getUint32(start + 24, true);
    this.viewId = view.getUint16(start + 28, true);
    this.routeId = view.getUint16(start + 30, true);
    this.traceId = view.getBigUint64(start + 32, true);
  }

  get metadataStart(): number {
    return this.start + headerBytes;
  }

  get byteLength(): number {
    return headerBytes + this.metaLength + this.bodyLength;
  }

  /** A view, not a copy. */
  get metadata(): Uint8Array {
    const from = this.start + headerBytes;
    return this.bytes.subarray(from, from + this.metaLength);
  }

  /** A view, not a copy. */
  get body(): Uint8Array {
    const from = this.start + headerBytes + this.metaLength;
    return this.bytes.subarray(from, from + this.bodyLength);
  }
}

/** Checks what makes a header a header, and reads its type. @throws {NnrpWireError} `bad-header`, `unknown-type`. */
export function readType(view: DataView, start: number): MessageName {
  if (view.getUint32(start, true) !== magic) throw badHeader("magic", "must be NNRP");
  if (view.getUint8(start + 4) !== versionMajor) throw badHeader("version_major", `must be ${versionMajor}`);
  if (view.getUint8(start + 5) !== wireFormat) throw badHeader("wire_format", `must be ${wireFormat}`);
  if (view.getUint8(start + 7) !== headerBytes) throw badHeader("header_len", `must be ${headerBytes}`);
  if ((view.getUint32(start + 8, true) & ~knownFlags) !== 0) throw badHeader("flags", "has unknown bits");
  const number = view.getUint8(start + 6);
  const name = messageName(number);
  if (name === undefined) {
    throw new NnrpWireError("unknown-type", `Message type 0x${number.toString(16)} is not assigned`, "message_type");
  }
  return name;
}

const badHeader = (name: string, problem: string) => new NnrpWireError("bad-header", `${name} ${problem}`, name);

/** Writes a header; what is left out is 0. */
export function writeHeader(
  view: DataView,
  start: number,
  messageNumber: number,
  metaLength: number,
  bodyLength: number,
  header: Partial<Omit<Header, "type">>,
): void {
  view.setUint32(start, magic, true);
  view.setUint8(start + 4, versionMajor);
  view.setUint8(start + 5, wireFormat);
  view.setUint8(start + 6, messageNumber);
  view.setUint8(start + 7, headerBytes);
  view.setUint32(start + 8, header.flags ?? 0, true);
  view.setUint32(start + 12, metaLength, true);
  view.setUint32(start + 16, bodyLength, true);
  view.setUint32(start + 20, header.sessionId ?? 0, true);
  view.setUint32(start + 24, header.frameId ?? 0, true);
  view.setUint16(start + 28, header.viewId ?? 0, true);
  view.setUint16(start + 30, header.routeId ?? 0, true);
  view.setBigUint64(start + 32, header.traceId ?? 0n, true);
}
