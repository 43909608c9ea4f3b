import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBody, encodeBody, kindsOf } from "./body-regions.ts";
import { decodeCapabilities, encodeCapabilities } from "./capability-body.ts";
import { FrameDecoder, readMessage } from "./decoder.ts";
import { type MessageName, messages } from "./messages.ts";
import { decodePacket, encodePacket } from "./packet.ts";
import type { AnyPacket, PacketDraft } from "./packet-types.ts";
import type { Field, RecordLayout } from "./record.ts";
import { capabilityTokens, PayloadKind } from "./registries.ts";
import { checkInput, makeInput, randomNumbers } from "./testing/fuzz.ts";
import { NnrpWireError } from "./wire-error.ts";

const most = { u8: 0xff, u16: 0xffff, i16: 0x7fff, u32: 0xffff_ffff, u64: 0 } as const;

function valuesOf({ width, allowed, nonZero }: Field): fc.Arbitrary<number | bigint> {
  if (width === "u64") return fc.bigInt({ min: nonZero ? 1n : 0n, max: 0xffff_ffff_ffff_ffffn });
  const least = width === "i16" ? -0x8000 : nonZero ? 1 : 0;
  const any = fc.integer({ min: least, max: most[width] });
  if (allowed === undefined) return any;
  const small = Array.from({ length: 256 }, (_, value) => value).filter((value) => value >= least && allowed(value));
  return fc.constantFrom(...small);
}

/** A message with any metadata that its table allows. */
function draftsOf(type: MessageName): fc.Arbitrary<PacketDraft> {
  const { metadata, body } = messages[type];
  const fields = Object.fromEntries((metadata as RecordLayout).entries.map(([name, field]) => [name, valuesOf(field)]));
  const free = typeof body === "string" || body.length === 1;
  return fc.record({
    type: fc.constant(type),
    flags: fc.integer({ min: 0, max: 0x3f }),
    sessionId: fc.nat(),
    frameId: fc.nat(),
    viewId: fc.nat({ max: 0xffff }),
    routeId: fc.nat({ max: 0xffff }),
    traceId: fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn }),
    metadata: fc.record(fields).map((values) => ({
      ...values,
      ...(free ? {} : Object.fromEntries(body.map((name) => [name, 0]))),
    })),
    body: free ? fc.uint8Array({ maxLength: 200 }) : fc.constant(new Uint8Array(0)),
  }) as fc.Arbitrary<PacketDraft>;
}

const drafts = fc.oneof(...(Object.keys(messages) as MessageName[]).map(draftsOf));

test("what is encoded is decoded to the same, or refused for a rule between its fields", () => {
  fc.assert(
    fc.property(drafts, (draft) => {
      const bytes = encodePacket(draft);
      let packet: AnyPacket;
      try {
        packet = decodePacket(readMessage(bytes));
      } catch (error) {
        expect(error).toBeInstanceOf(NnrpWireError);
        expect((error as NnrpWireError).code).toBe("bad-field");
        return;
      }
      expect(packet.metadata).toMatchObject({ ...draft.metadata, ...lengthField(packet) });
      expect(Buffer.compare(encodePacket(packet), bytes)).toBe(0);
    }),
    { numRuns: 2000 },
  );
});

function lengthField(packet: AnyPacket): Record<string, number> {
  const rule = messages[packet.type].body;
  const name = typeof rule !== "string" && rule.length === 1 ? rule[0] : undefined;
  return name === undefined ? {} : { [name]: packet.body.byteLength };
}

test("a stream cut anywhere gives the same frames", () => {
  fc.assert(
    fc.property(fc.array(drafts, { minLength: 1, maxLength: 5 }), fc.array(fc.nat({ max: 300 })), (list, cuts) => {
      const parts = list.map((draft) => encodePacket(draft));
      const stream = Buffer.concat(parts);
      const decoder = new FrameDecoder();
      const found: Uint8Array[] = [];
      let at = 0;
      for (const length of [...cuts, stream.byteLength]) {
        decoder.push(stream.subarray(at, at + length), (frame) => {
          found.push(frame.bytes.slice(frame.start, frame.start + frame.byteLength));
          return true;
        });
        at += length;
      }
      expect(Buffer.compare(Buffer.concat(found), stream)).toBe(0);
      expect(found.length).toBe(parts.length);
    }),
    { numRuns: 300 },
  );
});

test("bodies", () => {
  const bytes = fc.uint8Array({ maxLength: 40 });
  const u16 = fc.nat({ max: 0xffff });
  const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
  const payload = fc.record({
    kind: fc.constantFrom(...Object.values(PayloadKind).filter((kind) => kind !== PayloadKind.tensor)),
    profileId: fc.constant(2),
    flags: fc.nat({ max: 15 }),
    schemaId: u32,
    schemaVersion: u32,
    streamSemantics: u16,
    bytes,
  });
  const regions = fc.record({
    payloads: fc.array(payload, { maxLength: 4 }),
    inlineObjects: fc.array(fc.record({ objectKind: u16, objectFlags: u16, profileId: u16, bytes }), { maxLength: 3 }),
    objectReferences: fc.array(
      fc.record({
        objectKind: u16,
        refFlags: u16,
        cacheNamespace: u32,
        cacheKeyHi: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        cacheKeyLo: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      }),
      { maxLength: 3 },
    ),
    extensions: fc.array(fc.record({ extensionKind: u16, extensionFlags: u16, profileId: u16, bytes }), {
      maxLength: 3,
    }),
  });
  fc.assert(
    fc.property(regions, (value) => {
      const body = encodeBody(value);
      expect(decodeBody(body, kindsOf(value.payloads), value.payloads.length)).toEqual(value);
    }),
  );
});

test("capabilities", () => {
  fc.assert(
    fc.property(fc.subarray([...capabilityTokens]), (tokens) => {
      expect(decodeCapabilities(encodeCapabilities(tokens), tokens.length)).toEqual(tokens);
    }),
  );
});

test("100,000 changed inputs: only wire errors, the same bytes back, split or whole", () => {
  const next = randomNumbers(20);
  const { stackTraceLimit } = Error;
  // Most inputs end in an error, whose stack would take half of the time.
  Error.stackTraceLimit = 0;
  let packets = 0;
  for (let run = 0; run < 100_000; run += 1) {
    const input = makeInput(next);
    packets += checkInput(input, input.byteLength === 0 ? 0 : next() % input.byteLength);
  }
  Error.stackTraceLimit = stackTraceLimit;
  expect(packets).toBeGreaterThan(10_000);
}, 60_000);
