import type { Header } from "./frame.ts";
import type { MessageName, Metadata } from "./messages.ts";

/** One packet: header, metadata, body. The body is a view into what was received. */
export interface Packet<N extends MessageName = MessageName> extends Header {
  readonly type: N;
  readonly metadata: Readonly<Metadata<N>>;
  readonly body: Uint8Array;
}

/** Any packet; `type` tells which. */
export type AnyPacket = { [N in MessageName]: Packet<N> }[MessageName];

/** A packet to be written. Fields left out are 0; so is a metadata field, except the one that holds the body's length. */
export interface PacketDraft<N extends MessageName = MessageName> extends Partial<Omit<Header, "type">> {
  readonly type: N;
  readonly metadata?: Partial<Metadata<N>>;
  readonly body?: Uint8Array;
}

/** Any packet to be written. */
export type AnyPacketDraft = { [N in MessageName]: PacketDraft<N> }[MessageName];
