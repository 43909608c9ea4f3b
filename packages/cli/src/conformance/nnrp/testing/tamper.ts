import {
  type AnyPacket,
  type AnyPacketDraft,
  type Carrier,
  decodePacket,
  encodeBody,
  encodePacket,
  eventPayload,
  FrameDecoder,
  type Packet,
} from "@plenum/nnrp";

/** What a faulty service sends in the place of a packet; bytes go as they are. */
export type Tamper = (packet: AnyPacket) => readonly (AnyPacketDraft | Uint8Array)[];

/** A stream carrier whose other end seems to send something else, and to hear only what `hears` lets through. */
export function tampered(
  carrier: Carrier,
  tamper: Tamper,
  hears: (bytes: Uint8Array) => boolean = () => true,
): Carrier {
  const decoder = new FrameDecoder();
  return {
    kind: carrier.kind,
    secure: carrier.secure,
    remote: carrier.remote,
    framing: carrier.framing,
    get bufferedBytes() {
      return carrier.bufferedBytes;
    },
    start: (receiver) =>
      carrier.start({
        data: (bytes) =>
          decoder.push(bytes, (frame) => {
            for (const draft of tamper(decodePacket(frame))) {
              receiver.data(draft instanceof Uint8Array ? draft : encodePacket(draft));
            }
            return true;
          }),
        drained: () => receiver.drained(),
        ended: (error) => receiver.ended(error),
      }),
    send: (bytes, ends) => {
      if (hears(bytes)) carrier.send(bytes, ends);
    },
    pause: () => carrier.pause(),
    resume: () => carrier.resume(),
    close: (code) => carrier.close(code),
    destroy: () => carrier.destroy(),
  };
}

/** The event of a partial or a result. */
export function eventOf(packet: AnyPacket): Readonly<Record<string, unknown>> & { readonly type?: string } {
  const text = Buffer.from(packet.body).toString("utf8");
  if (packet.type === "PARTIAL_RESULT") return JSON.parse(text);
  return packet.type === "RESULT_PUSH" && text.length > 56
    ? JSON.parse(Buffer.from(packet.body.subarray(56)).toString("utf8"))
    : {};
}

/** A partial with another body. */
export function partial(packet: Packet<"PARTIAL_RESULT">, event: object | string): AnyPacketDraft {
  const body = Buffer.from(typeof event === "string" ? event : JSON.stringify(event));
  return { ...packet, metadata: { ...packet.metadata, bodyBytes: body.byteLength }, body };
}

/** A result with another event. */
export function result(packet: Packet<"RESULT_PUSH">, event: object): AnyPacketDraft {
  return { ...packet, body: encodeBody({ payloads: [eventPayload(Buffer.from(JSON.stringify(event)))] }) };
}
