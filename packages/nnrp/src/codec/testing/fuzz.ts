import { decodeBody, encodeBody } from "../body-regions.ts";
import { decodeCapabilities, encodeCapabilities } from "../capability-body.ts";
import { FrameDecoder } from "../decoder.ts";
import type { Frame } from "../frame.ts";
import { decodePacket, encodePacket } from "../packet.ts";
import type { AnyPacket } from "../packet-types.ts";
import { NnrpWireError } from "../wire-error.ts";
import { captures, fromHex, packets } from "./corpus.ts";

/** What decoders are fed with: recorded packets, changed in ways that reach past the first check. */

/** A small, fast, seeded source of numbers (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = state;
    value = Math.imul(value ^ (value >>> 15), value | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return (value ^ (value >>> 14)) >>> 0;
  };
}

const seeds: readonly Uint8Array[] = [
  ...new Map(
    [...captures, ...packets]
      .flatMap(({ frames }) => frames)
      .map(([, message, hex]) => [`${message}${hex.length}`, fromHex(hex)] as const),
  ).values(),
];
const interesting = [0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
const messageNumbers = Array.from({ length: 0x4c }, (_, number) => number);

const pick = <T>(values: readonly T[], next: () => number): T => values[next() % values.length] as T;

/** One input: one to three packets, with up to six changes. */
export function makeInput(next: () => number): Uint8Array {
  const parts = Array.from({ length: 1 + (next() % 3) }, () => pick(seeds, next));
  let bytes = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  const view = () => new DataView(bytes.buffer);
  for (let changes = next() % 7; changes > 0 && bytes.byteLength >= 44; changes -= 1) {
    const offset = next() % (bytes.byteLength - 3);
    switch (next() % 8) {
      case 0:
        bytes[offset] = next() & 0xff;
        break;
      case 1:
        view().setUint32(offset, pick(interesting, next), true);
        break;
      case 2:
        view().setUint16(offset, pick(interesting, next) & 0xffff, true);
        break;
      case 3: // another message under the same bytes
        bytes[6] = pick(messageNumbers, next);
        break;
      case 4: // metadata and body share their bytes in another way
        view().setUint32(12, next() % 100, true);
        break;
      case 5:
        view().setUint32(16, next() % (bytes.byteLength * 2), true);
        break;
      case 6: // cut off
        bytes = bytes.slice(0, offset);
        break;
      default: // a piece twice
        bytes.copyWithin(offset, 0, Math.min(next() % 64, bytes.byteLength - offset));
    }
  }
  return bytes;
}

/**
 * Feeds a decoder and checks what must always hold: only wire errors are thrown; what decodes encodes to the same bytes;
 * a split input gives the same frames. Answers how many packets were read.
 */
export function checkInput(bytes: Uint8Array, splitAt: number): number {
  const whole = readAll([bytes], checkFrame);
  const split = readAll([bytes.subarray(0, splitAt), bytes.subarray(splitAt)], () => false);
  if (whole.error !== split.error || whole.frames !== split.frames) {
    throw new Error(`Split at ${splitAt}: ${whole.frames} ${whole.error} is not ${split.frames} ${split.error}`);
  }
  return whole.packets;
}

function readAll(
  chunks: readonly Uint8Array[],
  isPacket: (frame: Frame) => boolean,
): { frames: number; packets: number; error: string } {
  const decoder = new FrameDecoder(1024 * 1024);
  let frames = 0;
  let packets = 0;
  let error = "";
  try {
    for (const chunk of chunks) {
      decoder.push(chunk, (frame) => {
        frames += 1;
        if (isPacket(frame)) packets += 1;
        return true;
      });
    }
  } catch (problem) {
    if (!(problem instanceof NnrpWireError && problem.fatal)) throw problem;
    error = problem.message;
  }
  const kept = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (decoder.pendingBytes > kept) throw new Error("The decoder keeps more than it was given");
  return { frames, packets, error };
}

function checkFrame(frame: Frame): boolean {
  let packet: AnyPacket;
  try {
    packet = decodePacket(frame);
  } catch (problem) {
    if (problem instanceof NnrpWireError && !problem.fatal) return false;
    throw problem;
  }
  const again = encodePacket(packet);
  if (Buffer.compare(again, frame.bytes.subarray(frame.start, frame.start + frame.byteLength)) !== 0) {
    throw new Error(`${packet.type} is encoded otherwise than it was read`);
  }
  checkBody(packet);
  return true;
}

function checkBody(packet: AnyPacket): void {
  try {
    if (packet.type === "FRAME_SUBMIT" || packet.type === "RESULT_PUSH") {
      const { payloadKindBitmap, payloadFrameCount } = packet.metadata;
      const regions = decodeBody(packet.body, payloadKindBitmap, payloadFrameCount);
      const same = packet.body.byteLength === 0 || Buffer.compare(encodeBody(regions), packet.body) === 0;
      if (!same) throw new Error("A body is encoded otherwise than it was read");
    } else if (packet.type === "CAPABILITY_NEGOTIATION" || packet.type === "DEGRADE_PROFILE") {
      const tokens = decodeCapabilities(packet.body, packet.metadata.capabilityCount);
      if (Buffer.compare(encodeCapabilities(tokens), packet.body) !== 0) throw new Error("Capabilities differ");
    }
  } catch (problem) {
    if (!(problem instanceof NnrpWireError) || problem.fatal || problem.code === "bad-value") throw problem;
  }
}
