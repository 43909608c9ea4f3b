import { describe, expect, test } from "vitest";
import { bodyRecords, decodeBody, encodeBody } from "./body-regions.ts";
import { FrameDecoder, readMessage } from "./decoder.ts";
import { Frame, writeHeader } from "./frame.ts";
import { messages } from "./messages.ts";
import { decodePacket, encodePacket } from "./packet.ts";
import { type RecordLayout, readRecord, writeRecord } from "./record.ts";
import { CacheErrorCode, SchemaErrorCode } from "./registries.ts";
import { captures, fromHex, packets, type Recording, toHex, vectors } from "./testing/corpus.ts";
import { NnrpWireError, type WireErrorCode } from "./wire-error.ts";

/** What was recorded to be wrong on purpose, and what is found. */
const wrong: Readonly<Record<string, WireErrorCode>> = {
  "server-bad-version CLIENT_HELLO": "bad-header",
  "server-bad-wire-format CLIENT_HELLO": "bad-header",
  "server-bad-header-length CLIENT_HELLO": "bad-header",
  "server-bad-flags CLIENT_HELLO": "bad-header",
  "server-hello-short CLIENT_HELLO": "bad-metadata-length",
  "server-submit-short FRAME_SUBMIT": "bad-metadata-length",
  "server-unknown-type UNKNOWN_0x7f": "unknown-type",
  "client-unknown-type UNKNOWN_0x7f": "unknown-type",
  /** It names operation 0. */
  "client-unknown-session PROGRESS": "bad-field",
  "server-oversized-u32 CLIENT_HELLO": "bad-message",
  "server-oversized-body FRAME_SUBMIT": "bad-message",
  "server-websocket-two-frames CLIENT_HELLO": "bad-message",
};

const isFrame = (message: string) => message in messages || message.startsWith("UNKNOWN");
const framesOf = (recording: Recording) => recording.frames.filter(([, message]) => isFrame(message));

function roundTrip(bytes: Uint8Array): string {
  try {
    return toHex(encodePacket(decodePacket(readMessage(bytes))));
  } catch (error) {
    if (error instanceof NnrpWireError) return error.code;
    throw error;
  }
}

describe.each([
  ["captures", captures, wrong, 600],
  ["packets of the Rust peers", packets, {}, 25],
] as const)("%s", (_, recordings, expected, least) => {
  test("every packet is encoded as it was read", () => {
    let count = 0;
    const found: Record<string, string> = {};
    for (const recording of recordings) {
      for (const [, message, hex] of framesOf(recording)) {
        const again = roundTrip(fromHex(hex));
        if (again === hex) count += 1;
        else found[`${recording.scenario} ${message}`] = again;
      }
    }
    expect(found).toEqual(expected);
    expect(count).toBeGreaterThan(least);
  });

  test("a stream gives the same packets, cut at every position and byte by byte", () => {
    let cuts = 0;
    for (const recording of recordings) {
      for (const direction of ["c2s", "s2c"] as const) {
        const frames = framesOf(recording)
          .filter(([way, , hex]) => way === direction && roundTrip(fromHex(hex)) === hex)
          .map(([, , hex]) => fromHex(hex));
        const stream = Buffer.concat(frames);
        for (let cut = 0; cut <= stream.byteLength; cut += 1) {
          expectFrames([stream.subarray(0, cut), stream.subarray(cut)], frames);
        }
        expectFrames(
          Array.from(stream, (_, at) => stream.subarray(at, at + 1)),
          frames,
        );
        cuts += stream.byteLength;
      }
    }
    expect(cuts).toBeGreaterThan(1000);
  }, 30_000);
});

/** Checked without the test library on the way: there are some hundred thousand of them. */
function expectFrames(chunks: readonly Uint8Array[], frames: readonly Uint8Array[]): void {
  const decoder = new FrameDecoder();
  let at = 0;
  let same = true;
  for (const chunk of chunks) {
    decoder.push(chunk, (frame) => {
      const expected = frames[at];
      at += 1;
      const bytes = frame.bytes.subarray(frame.start, frame.start + frame.byteLength);
      same &&= expected !== undefined && Buffer.compare(bytes, expected) === 0;
      return true;
    });
  }
  if (!same || at !== frames.length || decoder.pendingBytes !== 0) {
    expect.fail(`cut at ${chunks[0]?.byteLength}: ${at} of ${frames.length} frames, or other bytes`);
  }
}

test("bodies of recorded submits and results are laid out as they were read", () => {
  let count = 0;
  for (const [, message, hex] of captures.flatMap(framesOf)) {
    if (message !== "FRAME_SUBMIT" && message !== "RESULT_PUSH") continue;
    if (roundTrip(fromHex(hex)) !== hex) continue;
    const packet = decodePacket(readMessage(fromHex(hex)));
    if (packet.type !== "FRAME_SUBMIT" && packet.type !== "RESULT_PUSH") continue;
    // Bare JSON under metadata that declares a payload: the recorded peers let it pass.
    if (packet.body[0] === 0x7b) continue;
    const { payloadKindBitmap, payloadFrameCount } = packet.metadata;
    expect(toHex(encodeBody(decodeBody(packet.body, payloadKindBitmap, payloadFrameCount)))).toBe(toHex(packet.body));
    count += 1;
  }
  expect(count).toBeGreaterThan(100);
});

describe("vectors", () => {
  const records: Readonly<Record<string, RecordLayout>> = {
    session_open_metadata: messages.SESSION_OPEN.metadata,
    session_open_ack_metadata: messages.SESSION_OPEN_ACK.metadata,
    session_close_metadata: messages.SESSION_CLOSE.metadata,
    session_close_ack_metadata: messages.SESSION_CLOSE_ACK.metadata,
    cache_put_metadata: messages.CACHE_PUT.metadata,
    cache_ack_metadata: messages.CACHE_ACK.metadata,
    cache_invalidate_metadata: messages.CACHE_INVALIDATE.metadata,
    cache_reference_metadata: messages.CACHE_REFERENCE.metadata,
    cache_miss_metadata: messages.CACHE_MISS.metadata,
    schema_descriptor_header: bodyRecords.SchemaDescriptorHeader,
    typed_payload_descriptor: bodyRecords.TypedPayloadDescriptor,
    object_reference: bodyRecords.ObjectReferenceBlock,
  };
  const codes: Readonly<Record<string, Readonly<Record<string, number>>>> = {
    cache_error_code: CacheErrorCode,
    schema_error_code: SchemaErrorCode,
  };
  /** Labels of the vector generator, never on the wire. */
  const labels = new Set(["control_frame", "object_frame", "result_drop_reason"]);

  test.each(vectors.filter(({ kind }) => !labels.has(kind)))("$name", ({ name, kind, hex }) => {
    const bytes = fromHex(hex);
    const view = new DataView(bytes.buffer);
    const again = new Uint8Array(bytes.byteLength);
    const layout = records[kind];
    const registry = codes[kind];
    if (layout !== undefined) {
      expect(layout.size).toBe(bytes.byteLength);
      writeRecord(layout, new DataView(again.buffer), 0, readRecord(layout, view, 0));
      expect(toHex(again)).toBe(hex);
    } else if (registry !== undefined) {
      const key = (name.split(".").at(-1) ?? "").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      expect(registry[key]).toBe(view.getUint32(0, true));
    } else if (kind === "header") {
      const frame = new Frame(bytes, view, 0);
      writeHeader(new DataView(again.buffer), 0, 0x10, frame.metaLength, frame.bodyLength, frame);
      expect(toHex(again)).toBe(hex);
    } else {
      expect(kind).toBe("flow_update_packet");
      expect(roundTrip(bytes)).toBe(hex);
    }
  });
});
