export {
  type BodyRegions,
  decodeBody,
  type ExtensionFrame,
  encodeBody,
  eventPayload,
  type InlineObject,
  kindsOf,
  type ObjectReference,
} from "./codec/body-regions.ts";
export { decodeCapabilities, encodeCapabilities } from "./codec/capability-body.ts";
export { FrameDecoder, readMessage } from "./codec/decoder.ts";
export { type Frame, type Header, headerBytes, packetBytesLimit } from "./codec/frame.ts";
export { type MessageName, type Metadata, messageName, messages } from "./codec/messages.ts";
export { decodePacket, encodePacket } from "./codec/packet.ts";
export type { AnyPacket, AnyPacketDraft, Packet, PacketDraft } from "./codec/packet-types.ts";
export * from "./codec/registries.ts";
export type { TypedPayload } from "./codec/typed-payload.ts";
export { NnrpWireError, type WireErrorCode } from "./codec/wire-error.ts";
export type { RejectionReason, TransportPolicy } from "./endpoint/choose.ts";
export { type Endpoint, formatLocator, type Locator, parseEndpoint } from "./endpoint/endpoint.ts";
export type { Carrier, CarrierInfo, CarrierKind, CarrierReceiver } from "./session/carrier.ts";
export { connectCarrier } from "./session/client/connection.ts";
export type * from "./session/client/types.ts";
export { type Clock, systemClock } from "./session/clock.ts";
export type * from "./session/controls.ts";
export { NnrpError, type NnrpErrorCode } from "./session/errors.ts";
export { type ClientLimits, defaultClientLimits, defaultServerLimits, type ServerLimits } from "./session/limits.ts";
export { createCarrierPair } from "./session/memory.ts";
export { createServer } from "./session/server/server.ts";
export type * from "./session/server/types.ts";
