import { checkPacket } from "./consistency.ts";
import { type Frame, headerBytes, packetBytesLimit, writeHeader } from "./frame.ts";
import { type MessageName, messages } from "./messages.ts";
import type { AnyPacket, PacketDraft } from "./packet-types.ts";
import { type Fields, type RecordLayout, readRecord, type Values, writeRecord } from "./record.ts";
import { NnrpWireError } from "./wire-error.ts";

export const noBytes = new Uint8Array(0);

/**
 * Reads the metadata of a frame and checks it, alone and against header and body.
 *
 * @throws {NnrpWireError} `bad-metadata-length`, `bad-field`, `bad-body-length`; the stream can be read on.
 */
export function decodePacket(frame: Frame): AnyPacket {
  const { metadata: layout, body: bodyRule } = messages[frame.type];
  if (frame.metaLength !== layout.size) {
    throw new NnrpWireError(
      "bad-metadata-length",
      `${frame.type} needs ${layout.size} metadata bytes, not ${frame.metaLength}`,
      "meta_len",
    );
  }
  const metadata = readRecord<Fields>(layout as RecordLayout, frame.view, frame.metadataStart);
  if (typeof bodyRule !== "string") {
    let expected = 0;
    for (const name of bodyRule) expected += Number(metadata[name]);
    if (expected !== frame.bodyLength) {
      throw new NnrpWireError(
        "bad-body-length",
        `${frame.type} has ${frame.bodyLength} body bytes where its metadata says ${expected}`,
        bodyRule[0] ?? "body_len",
      );
    }
  }
  const { type, flags, sessionId, frameId, viewId, routeId, traceId } = frame;
  const packet = { type, flags, sessionId, frameId, viewId, routeId, traceId, metadata, body: frame.body } as AnyPacket;
  checkPacket(packet, (message, field) => new NnrpWireError("bad-field", `${packet.type}: ${message}`, field));
  return packet;
}

/** The bytes that a draft takes. */
export const packetBytes = (draft: PacketDraft): number =>
  headerBytes + messages[draft.type].metadata.size + (draft.body?.byteLength ?? 0);

/**
 * Writes a packet over bytes that are 0, and answers the offset after it.
 *
 * @throws {NnrpWireError} `bad-value`, `too-large`.
 */
export function writePacket(bytes: Uint8Array, view: DataView, start: number, draft: PacketDraft): number {
  const { number, metadata: layout, body: bodyRule } = messages[draft.type];
  const body = draft.body ?? noBytes;
  const length = headerBytes + layout.size + body.byteLength;
  if (length > packetBytesLimit) throw new NnrpWireError("too-large", `${draft.type} of ${length} bytes is too large`);
  const values: Partial<Values<Fields>> = { ...draft.metadata };
  if (typeof bodyRule !== "string") {
    const [only, ...more] = bodyRule;
    if (only !== undefined && more.length === 0) values[only] = body.byteLength;
    const said = bodyRule.reduce((sum, name) => sum + Number(values[name] ?? 0), 0);
    if (said !== body.byteLength) {
      throw new NnrpWireError("bad-value", `${draft.type}: the body has ${body.byteLength} bytes, not ${said}`, only);
    }
  }
  writeHeader(view, start, number, layout.size, body.byteLength, draft);
  writeRecord<Fields>(layout as RecordLayout, view, start + headerBytes, values);
  bytes.set(body, start + headerBytes + layout.size);
  return start + length;
}

/** Encodes one packet. @throws {NnrpWireError} `bad-value`, `too-large`. */
export function encodePacket<N extends MessageName>(draft: PacketDraft<N>): Uint8Array {
  const bytes = new Uint8Array(packetBytes(draft));
  writePacket(bytes, new DataView(bytes.buffer), 0, draft as PacketDraft);
  return bytes;
}
