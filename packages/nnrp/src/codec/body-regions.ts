import { type Field, mask, oneOf, readRecord, record, u8, u16, u32, u64, type Values, writeRecord } from "./record.ts";
import { PayloadKind, StandardProfile } from "./registries.ts";
import type { TypedPayload } from "./typed-payload.ts";
import { NnrpWireError } from "./wire-error.ts";

/** The layout of FRAME_SUBMIT's and RESULT_PUSH's body (section 5). The contract names these records. */

const none = (value: number) => value === 0;

export const bodyRecords = {
  BodyRegionPrelude: record(32, {
    inlineObjectBytes: u32(0),
    objectReferenceBytes: u32(4),
    typedPayloadDescriptorBytes: u32(8),
    typedPayloadFrameBytes: u32(12),
    extensionDescriptorBytes: u32(16),
    extensionPayloadBytes: u32(20),
    bodyFlags: u32(24, none),
  }),
  InlineObjectBlockHeader: record(16, {
    objectKind: u16(0),
    objectFlags: u16(2),
    profileId: u16(4),
    objectBytes: u32(8),
  }),
  ObjectReferenceBlock: record(24, {
    objectKind: u16(0),
    refFlags: u16(2),
    cacheNamespace: u32(4),
    cacheKeyHi: u64(8),
    cacheKeyLo: u64(16),
  }),
  TypedPayloadDescriptor: record(24, {
    profileId: u16(0, (value) => value !== StandardProfile.tensor),
    payloadKind: u8(2, (value) => value !== PayloadKind.tensor && oneOf(PayloadKind)(value)),
    descriptorFlags: u8(3, mask(0x0f)),
    schemaId: u32(4),
    schemaVersion: u32(8),
    streamSemantics: u16(12),
    offset: u32(16),
    length: u32(20),
  }),
  ExtensionFrameDescriptor: record(16, {
    extensionKind: u16(0),
    extensionFlags: u16(2),
    profileId: u16(4),
    payloadOffset: u32(8),
    payloadLength: u32(12),
  }),
  TensorSectionDescriptor: record(32, {
    roleId: u16(0),
    codecId: u8(2),
    dtypeId: u8(3),
    layoutId: u8(4),
    scalePolicy: u8(5),
    sectionFlags: u16(6),
    elementCountPerTile: u32(8),
    codecTableBytes: u32(12),
    lengthTableBytes: u32(16),
    payloadBytes: u32(20),
    payloadStrideBytes: u32(24),
  }),
  SchemaDescriptorHeader: record(32, {
    schemaId: u32(0),
    schemaVersion: u32(4),
    profileId: u16(8),
    schemaFlags: u16(10),
    minVersionMajor: u8(12),
    maxVersionMajor: u8(13),
    bodyBytes: u32(16),
    dependencyCount: u16(20),
    defaultStreamSemantics: u16(22),
    schemaHash: u64(24),
  }),
} as const satisfies Record<string, ReturnType<typeof record<Readonly<Record<string, Field>>>>>;

type RecordValues<N extends keyof typeof bodyRecords> = Values<(typeof bodyRecords)[N]["fields"]>;

export type ObjectReference = Readonly<RecordValues<"ObjectReferenceBlock">>;
export type InlineObject = Readonly<Omit<RecordValues<"InlineObjectBlockHeader">, "objectBytes">> & {
  readonly bytes: Uint8Array;
};
export type ExtensionFrame = Readonly<
  Pick<RecordValues<"ExtensionFrameDescriptor">, "extensionKind" | "extensionFlags" | "profileId">
> & {
  readonly bytes: Uint8Array;
};

/** The parts of a body; every `bytes` is a view into it. */
export interface BodyRegions {
  readonly payloads: readonly TypedPayload[];
  readonly inlineObjects: readonly InlineObject[];
  readonly objectReferences: readonly ObjectReference[];
  readonly extensions: readonly ExtensionFrame[];
}

const { BodyRegionPrelude: prelude, TypedPayloadDescriptor: descriptor } = bodyRecords;
const { InlineObjectBlockHeader: inlineHeader, ObjectReferenceBlock: reference } = bodyRecords;
const extension = bodyRecords.ExtensionFrameDescriptor;
const align = (bytes: number) => Math.ceil(bytes / 8) * 8;
const badBody = (message: string, field: string) => new NnrpWireError("bad-body", message, field);

/**
 * Reads a body under what its packet's metadata says of it.
 *
 * @throws {NnrpWireError} `bad-body`, `bad-field`.
 */
export function decodeBody(body: Uint8Array, payloadKindBitmap: number, payloadFrameCount: number): BodyRegions {
  if (body.byteLength === 0 && payloadKindBitmap === 0 && payloadFrameCount === 0) {
    return { payloads: [], inlineObjects: [], objectReferences: [], extensions: [] };
  }
  if ((payloadKindBitmap & PayloadKind.tensor) !== 0)
    throw badBody("Tensor payloads are not read", "payloadKindBitmap");
  if (body.byteLength < prelude.size) throw badBody("The body is shorter than its prelude", "body_len");
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const sizes = readRecord(prelude, view, 0);
  const inlineStart = prelude.size;
  const referenceStart = inlineStart + sizes.inlineObjectBytes;
  const descriptorStart = referenceStart + sizes.objectReferenceBytes;
  const frameStart = descriptorStart + sizes.typedPayloadDescriptorBytes;
  const extensionStart = frameStart + sizes.typedPayloadFrameBytes;
  const extensionFrameStart = extensionStart + sizes.extensionDescriptorBytes;
  const end = extensionFrameStart + sizes.extensionPayloadBytes;
  if (end !== body.byteLength) {
    throw badBody(`The regions take ${end} bytes, the body has ${body.byteLength}`, "body_len");
  }
  if (sizes.typedPayloadDescriptorBytes !== descriptor.size * payloadFrameCount) {
    throw badBody("The descriptors do not fit payload_frame_count", "typedPayloadDescriptorBytes");
  }
  return {
    inlineObjects: readInlineObjects(body, view, inlineStart, referenceStart),
    objectReferences: readReferences(view, referenceStart, descriptorStart),
    payloads: readPayloads(body, view, descriptorStart, frameStart, extensionStart, payloadKindBitmap),
    extensions: readExtensions(body, view, extensionStart, extensionFrameStart, end),
  };
}

function readPayloads(
  body: Uint8Array,
  view: DataView,
  from: number,
  frames: number,
  end: number,
  payloadKindBitmap: number,
): TypedPayload[] {
  const payloads: TypedPayload[] = [];
  let kinds = 0;
  let at = frames;
  for (let offset = from; offset < frames; offset += descriptor.size) {
    const values = readRecord(descriptor, view, offset);
    if (values.payloadKind === PayloadKind.tokenChunk && values.profileId !== StandardProfile.token) {
      throw badBody("A token chunk belongs to the token profile", "profileId");
    }
    if (frames + values.offset !== at) throw badBody("Payloads must follow each other", "offset");
    if (values.length > end - at) throw badBody("A payload reaches over its region", "length");
    payloads.push({
      profileId: values.profileId,
      kind: values.payloadKind,
      flags: values.descriptorFlags,
      schemaId: values.schemaId,
      schemaVersion: values.schemaVersion,
      streamSemantics: values.streamSemantics,
      bytes: body.subarray(at, at + values.length),
    });
    kinds |= values.payloadKind;
    at += values.length;
  }
  if (at !== end) throw badBody("Payloads must fill their region", "typedPayloadFrameBytes");
  if (kinds !== payloadKindBitmap) throw badBody("The payloads are of other kinds", "payloadKindBitmap");
  return payloads;
}

function readInlineObjects(body: Uint8Array, view: DataView, from: number, end: number): InlineObject[] {
  const objects: InlineObject[] = [];
  for (let at = from; at < end; ) {
    if (end - at < inlineHeader.size) throw badBody("An inline object is cut off", "inlineObjectBytes");
    const { objectBytes, ...values } = readRecord(inlineHeader, view, at);
    const start = at + inlineHeader.size;
    if (objectBytes > end - start || align(objectBytes) > end - start) {
      throw badBody("An inline object reaches over its region", "objectBytes");
    }
    objects.push({ ...values, bytes: body.subarray(start, start + objectBytes) });
    at = start + align(objectBytes);
    for (let pad = start + objectBytes; pad < at; pad += 1) {
      if (body[pad] !== 0) throw badBody("Padding must be 0", "inlineObjectBytes");
    }
  }
  return objects;
}

function readReferences(view: DataView, from: number, end: number): ObjectReference[] {
  if ((end - from) % reference.size !== 0) throw badBody("An object reference is cut off", "objectReferenceBytes");
  const references: ObjectReference[] = [];
  for (let at = from; at < end; at += reference.size) references.push(readRecord(reference, view, at));
  return references;
}

function readExtensions(body: Uint8Array, view: DataView, from: number, frames: number, end: number): ExtensionFrame[] {
  if ((frames - from) % extension.size !== 0) throw badBody("A descriptor is cut off", "extensionDescriptorBytes");
  const extensions: ExtensionFrame[] = [];
  let at = frames;
  for (let offset = from; offset < frames; offset += extension.size) {
    const { payloadOffset, payloadLength, ...values } = readRecord(extension, view, offset);
    if (frames + payloadOffset !== at) throw badBody("Extension payloads must follow each other", "payloadOffset");
    if (payloadLength > end - at) throw badBody("An extension payload reaches over its region", "payloadLength");
    extensions.push({ ...values, bytes: body.subarray(at, at + payloadLength) });
    at += payloadLength;
  }
  if (at !== end) throw badBody("Extension payloads must fill their region", "extensionPayloadBytes");
  return extensions;
}

const bytesOf = (parts: readonly { readonly bytes: Uint8Array }[]) =>
  parts.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);

/** The kinds of payloads, as the metadata's `payloadKindBitmap` says them. */
export const kindsOf = (payloads: readonly TypedPayload[]): number =>
  payloads.reduce((kinds, { kind }) => kinds | kind, 0);

/** Writes a body; parts left out are empty. @throws {NnrpWireError} `bad-value`. */
export function encodeBody(regions: Partial<BodyRegions>): Uint8Array {
  const { payloads = [], inlineObjects = [], objectReferences = [], extensions = [] } = regions;
  const sizes = {
    inlineObjectBytes: inlineObjects.reduce((sum, { bytes }) => sum + inlineHeader.size + align(bytes.byteLength), 0),
    objectReferenceBytes: objectReferences.length * reference.size,
    typedPayloadDescriptorBytes: payloads.length * descriptor.size,
    typedPayloadFrameBytes: bytesOf(payloads),
    extensionDescriptorBytes: extensions.length * extension.size,
    extensionPayloadBytes: bytesOf(extensions),
  };
  const body = new Uint8Array(Object.values(sizes).reduce((sum, size) => sum + size, prelude.size));
  const view = new DataView(body.buffer);
  writeRecord(prelude, view, 0, sizes);
  let at = prelude.size;
  for (const { bytes, ...values } of inlineObjects) {
    writeRecord(inlineHeader, view, at, { ...values, objectBytes: bytes.byteLength });
    body.set(bytes, at + inlineHeader.size);
    at += inlineHeader.size + align(bytes.byteLength);
  }
  for (const values of objectReferences) {
    writeRecord(reference, view, at, values);
    at += reference.size;
  }
  let offset = 0;
  const frames = at + sizes.typedPayloadDescriptorBytes;
  for (const payload of payloads) {
    writeRecord(descriptor, view, at, {
      profileId: payload.profileId,
      payloadKind: payload.kind,
      descriptorFlags: payload.flags,
      schemaId: payload.schemaId,
      schemaVersion: payload.schemaVersion,
      streamSemantics: payload.streamSemantics,
      offset,
      length: payload.bytes.byteLength,
    });
    body.set(payload.bytes, frames + offset);
    at += descriptor.size;
    offset += payload.bytes.byteLength;
  }
  at = frames + offset;
  offset = 0;
  const extensionFrames = at + sizes.extensionDescriptorBytes;
  for (const { bytes, ...values } of extensions) {
    writeRecord(extension, view, at, { ...values, payloadOffset: offset, payloadLength: bytes.byteLength });
    body.set(bytes, extensionFrames + offset);
    at += extension.size;
    offset += bytes.byteLength;
  }
  return body;
}

/** The payload that carries one event: profile 0, schema 0/0, a snapshot. */
export const eventPayload = (bytes: Uint8Array): TypedPayload => ({
  profileId: StandardProfile.unspecified,
  kind: PayloadKind.structuredEvent,
  flags: 0,
  schemaId: 0,
  schemaVersion: 0,
  streamSemantics: 1,
  bytes,
});
