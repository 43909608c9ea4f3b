import {
  type AnyPacket,
  decodeBody,
  NnrpWireError,
  type Packet,
  PayloadKind,
  SessionCloseStatus,
  StandardProfile,
} from "@plenum/nnrp";
import { parseObject } from "@plenum/profile";
import type { RecordedPacket } from "./recording.ts";

/** An operation as its packets show it. */
interface Seen {
  readonly operationId: bigint;
  readonly frameId: number;
  lastSequence: bigint;
  hasEnded: boolean;
}

/**
 * What a server may not do on one connection, whatever the operations are about (wire description §4, §5, §8, §12.2).
 * @returns each fault in words.
 */
export function checkWire(packets: readonly RecordedPacket[]): readonly string[] {
  const check = new WireCheck();
  for (const recorded of packets) check.take(recorded);
  return check.end();
}

class WireCheck {
  readonly #faults: string[] = [];
  /** By session and frame. */
  readonly #operations = new Map<string, Seen>();
  readonly #closing = new Set<number>();

  take({ direction, packet, fault }: RecordedPacket): void {
    if (direction === "sent") {
      if (packet !== undefined) this.#sent(packet);
    } else if (packet === undefined) this.#faults.push(`a packet that can't be read: ${fault ?? "unknown"}`);
    else this.#received(packet);
  }

  end(): readonly string[] {
    for (const session of this.#closing) this.#faults.push(`SESSION_CLOSE of session ${session} was not acknowledged`);
    return this.#faults;
  }

  #sent(packet: AnyPacket): void {
    if (packet.type === "FRAME_SUBMIT") {
      const { sessionId, frameId, metadata } = packet;
      const seen = { operationId: metadata.operationId, frameId, lastSequence: 0n, hasEnded: false };
      this.#operations.set(keyOf(sessionId, frameId), seen);
    } else if (packet.type === "SESSION_CLOSE") this.#closing.add(packet.sessionId);
  }

  #received(packet: AnyPacket): void {
    switch (packet.type) {
      case "PARTIAL_RESULT":
        this.#partial(packet);
        return;
      case "PROGRESS":
        this.#find(packet, packet.metadata.operationId);
        return;
      case "TRACE_CONTEXT":
        if (packet.frameId !== 0) this.#find(packet);
        return;
      case "RESULT_PUSH":
        this.#terminal(packet);
        this.#result(packet);
        return;
      case "RESULT_DROP_REASON":
        this.#terminal(packet, packet.metadata.operationId);
        return;
      case "RESULT_DROP":
        this.#terminal(packet);
        return;
      case "SESSION_CLOSE_ACK":
        if (packet.metadata.closeStatus === SessionCloseStatus.closed) this.#closing.delete(packet.sessionId);
        return;
      default:
        return;
    }
  }

  #find({ type, sessionId, frameId }: AnyPacket, operationId?: bigint): Seen | undefined {
    const seen = this.#operations.get(keyOf(sessionId, frameId));
    if (seen === undefined) {
      this.#faults.push(`${type} for frame ${frameId} of session ${sessionId}, which was never submitted`);
    } else if (operationId !== undefined && operationId !== seen.operationId) {
      this.#faults.push(`${type} of frame ${frameId} names operation ${operationId}, not ${seen.operationId}`);
    } else if (seen.hasEnded) {
      this.#faults.push(`${type} after the end of operation ${seen.operationId}`);
    }
    return seen;
  }

  #partial(packet: Packet<"PARTIAL_RESULT">): void {
    const { metadata, body } = packet;
    const seen = this.#find(packet, metadata.operationId);
    if (seen === undefined) return;
    if (metadata.resultSequence <= seen.lastSequence) {
      this.#faults.push(`PARTIAL_RESULT ${metadata.resultSequence} follows ${seen.lastSequence}`);
    }
    seen.lastSequence = metadata.resultSequence;
    const parsed = parseObject(body);
    if (!parsed.ok) this.#faults.push(`PARTIAL_RESULT is not one bare JSON event: ${parsed.problem}`);
  }

  #terminal(packet: AnyPacket, operationId?: bigint): void {
    const seen = this.#find(packet, operationId);
    if (seen !== undefined) seen.hasEnded = true;
  }

  /** One structured event, described truthfully, or nothing at all. */
  #result({ metadata, body }: Packet<"RESULT_PUSH">): void {
    const { payloadKindBitmap, payloadFrameCount } = metadata;
    try {
      const { payloads } = decodeBody(body, payloadKindBitmap, payloadFrameCount);
      if (body.byteLength === 0) return;
      const [payload, ...more] = payloads;
      const isTyped =
        payload !== undefined &&
        more.length === 0 &&
        payload.kind === PayloadKind.structuredEvent &&
        payload.profileId === StandardProfile.unspecified &&
        payload.flags === 0 &&
        payload.schemaId === 0 &&
        payload.schemaVersion === 0 &&
        payload.streamSemantics === 1;
      if (!isTyped) this.#faults.push("RESULT_PUSH does not hold exactly one structured event of the profile");
    } catch (error) {
      if (!(error instanceof NnrpWireError)) throw error;
      this.#faults.push(`RESULT_PUSH is not laid out as its metadata says: ${error.message}`);
    }
  }
}

function keyOf(sessionId: number, frameId: number): string {
  return `${sessionId}/${frameId}`;
}
