import { readFileSync } from "node:fs";
import {
  type AnyPacket,
  type Carrier,
  createServer,
  decodeBody,
  decodePacket,
  type Frame,
  FrameDecoder,
  parseEndpoint,
  readMessage,
} from "@plenum/nnrp";
import { listen, openCarrier } from "@plenum/nnrp/node";
import { type JsonObject, parseObject } from "@plenum/profile";

/** The outside suite's live scenarios, played from its files and from recorded packets. */
export interface Scenario {
  readonly id: string;
  readonly mode: "suite_as_client" | "suite_as_server" | "suite_as_proxy";
  readonly transport: "tcp" | "ipc" | "websocket" | "quic";
  readonly required_capabilities: readonly string[];
  readonly expect: {
    readonly terminal: string;
    readonly frames: readonly string[];
    readonly allowed_frames: readonly string[];
    readonly result_drop_reason_code?: number;
    readonly frame_payload_invariants?: readonly {
      readonly frame: string;
      readonly direction: "sent" | "received";
      readonly fields: Readonly<Record<string, unknown>>;
    }[];
  };
}

function readFixture<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
}

const folder = "./__fixtures__/nnrp-wire-scenarios";

/** Every scenario that is about frames and needs no QUIC. */
export const scenarios = [`${folder}/openai-compatible-e2e.json`, `${folder}/runtime-control-e2e.json`]
  .flatMap((path) => readFixture<{ readonly scenarios: readonly Scenario[] }>(path).scenarios)
  .filter(({ transport }) => transport !== "quic");

type RecordedFrame = readonly ["c2s" | "s2c", string, string];

interface Recorded {
  readonly scenario: string;
  readonly transport: string;
  readonly frames: readonly RecordedFrame[];
}

const recordings = readFixture<readonly Recorded[]>("../../packages/nnrp/src/codec/__fixtures__/packets.json");

/** What the suite's own peer sent in this scenario. */
function recordingOf({ id, mode, transport }: Scenario): readonly RecordedFrame[] {
  const peer = mode === "suite_as_client" ? "rust-client-vs-probe-server" : "probe-client-vs-rust-server";
  const mark = id.includes("cancel-abort") ? "CANCEL" : id.includes("deadline") ? "DEADLINE" : undefined;
  const found = recordings.find(({ scenario, transport: carrier, frames }) => {
    if (scenario !== peer || carrier !== transport) return false;
    const names = frames.map(([, name]) => name);
    return mark === undefined ? !names.includes("CANCEL") && !names.includes("DEADLINE") : names.includes(mark);
  });
  if (found === undefined) throw new Error(`nothing was recorded of ${id}`);
  return found.frames;
}

export interface ObservedFrame {
  readonly direction: "sent" | "received";
  /** The suite's name. */
  readonly frame: string;
  readonly packet: AnyPacket;
}

const setUp = new Set(["CLIENT_HELLO", "SESSION_OPEN", "SESSION_CLOSE"]);
const terminals = new Set(["RESULT_PUSH", "RESULT_DROP_REASON", "RESULT_DROP"]);

function observed(direction: ObservedFrame["direction"], packet: AnyPacket): ObservedFrame {
  return { direction, packet, frame: packet.type === "FRAME_SUBMIT" ? "REQUEST" : packet.type };
}

/** Packets as they come, one by one. */
class Inbox {
  readonly #waiting: AnyPacket[] = [];
  #wake: () => void = () => {};
  #hasEnded = false;

  put(packet: AnyPacket): void {
    this.#waiting.push(packet);
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  async next(): Promise<AnyPacket> {
    for (;;) {
      const packet = this.#waiting.shift();
      if (packet !== undefined) return packet;
      if (this.#hasEnded) throw new Error("the target hung up");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function receive(carrier: Carrier): Inbox {
  const inbox = new Inbox();
  const decoder = new FrameDecoder();
  const take = (frame: Frame): void => inbox.put(decodePacket(frame));
  carrier.start({
    data: (bytes) => {
      if (carrier.framing === "message") take(readMessage(bytes));
      else
        decoder.push(bytes, (frame) => {
          take(frame);
          return true;
        });
    },
    drained: () => {},
    ended: () => inbox.end(),
  });
  return inbox;
}

/** Bytes of a recorded frame, moved to another session, frame or operation. */
function bytesOf([, , hex]: RecordedFrame, to: { sessionId?: number; frameId?: number; operationId?: bigint }) {
  const bytes = new Uint8Array(Buffer.from(hex, "hex"));
  const view = new DataView(bytes.buffer);
  if (to.sessionId !== undefined) view.setUint32(20, to.sessionId, true);
  if (to.frameId !== undefined) view.setUint32(24, to.frameId, true);
  if (to.operationId !== undefined) view.setBigUint64(40, to.operationId, true);
  return bytes;
}

/** Plays the client: recorded packets, byte for byte but for the session's id. */
export async function playClient(scenario: Scenario, locator: string): Promise<readonly ObservedFrame[]> {
  const endpoint = parseEndpoint(locator);
  if (endpoint.kind === "application") throw new Error(`${locator} names no carrier`);
  const carrier = await openCarrier(endpoint.locator);
  const inbox = receive(carrier);
  const frames: ObservedFrame[] = [];
  const sent = recordingOf(scenario).filter(([from]) => from === "c2s");
  let sessionId = 0;
  const send = (frame: RecordedFrame): AnyPacket => {
    const bytes = bytesOf(frame, sessionId === 0 ? {} : { sessionId });
    carrier.send(bytes, [bytes.byteLength]);
    return decodePacket(readMessage(bytes));
  };
  const expectNext = async (name: string): Promise<AnyPacket> => {
    const packet = await inbox.next();
    if (packet.type !== name) throw new Error(`${packet.type} came instead of ${name}`);
    return packet;
  };
  try {
    for (const frame of sent) {
      const [, name] = frame;
      if (name === "SESSION_CLOSE") {
        while (!frames.some(({ direction, packet }) => direction === "received" && terminals.has(packet.type))) {
          frames.push(observed("received", await inbox.next()));
        }
      }
      const packet = send(frame);
      if (name === "CLIENT_HELLO") await expectNext("SERVER_HELLO_ACK");
      else if (name === "SESSION_OPEN") sessionId = (await expectNext("SESSION_OPEN_ACK")).sessionId;
      else if (!setUp.has(name)) frames.push(observed("sent", packet));
    }
    // Whatever came after the terminal stands before the acknowledgement.
    for (;;) {
      const packet = await inbox.next();
      if (packet.type === "SESSION_CLOSE_ACK") return frames;
      frames.push(observed("received", packet));
    }
  } finally {
    carrier.destroy();
  }
}

/** Plays the server for one connection: the recorded packets, for the frame and operation that the target chose. */
export async function playServer(scenario: Scenario, locator: string): Promise<readonly ObservedFrame[]> {
  const recorded = recordingOf(scenario).filter(([from]) => from === "s2c");
  const { carrier, close } = await acceptOne(locator);
  const inbox = receive(carrier);
  const frames: ObservedFrame[] = [];
  const answer = (name: string, to: Parameters<typeof bytesOf>[1] = {}): AnyPacket => {
    const frame = recorded.find(([, recordedName]) => recordedName === name);
    if (frame === undefined) throw new Error(`no ${name} was recorded`);
    const bytes = bytesOf(frame, to);
    carrier.send(bytes, [bytes.byteLength]);
    return decodePacket(readMessage(bytes));
  };
  try {
    for (;;) {
      const packet = await inbox.next();
      switch (packet.type) {
        case "CLIENT_HELLO":
          answer("SERVER_HELLO_ACK");
          break;
        case "SESSION_OPEN":
          answer("SESSION_OPEN_ACK");
          break;
        case "FRAME_SUBMIT": {
          frames.push(observed("received", packet));
          const { frameId, metadata } = packet;
          const { operationId } = metadata;
          frames.push(observed("sent", answer("PROGRESS", { frameId, operationId })));
          frames.push(observed("sent", answer("CREDIT_UPDATE")));
          frames.push(observed("sent", answer("PARTIAL_RESULT", { frameId, operationId })));
          answer("RESULT_PUSH", { frameId });
          break;
        }
        case "SESSION_CLOSE":
          answer("SESSION_CLOSE_ACK");
          return frames;
        default:
          frames.push(observed("received", packet));
      }
    }
  } finally {
    await close();
  }
}

/** The first carrier that comes to an address. */
async function acceptOne(locator: string): Promise<{ readonly carrier: Carrier; close(): Promise<void> }> {
  let take: (carrier: Carrier) => void = () => {};
  const first = new Promise<Carrier>((resolve) => {
    take = resolve;
  });
  const server = { ...createServer({ operation: () => undefined }), accept: (carrier: Carrier) => take(carrier) };
  const listener = await listen(server, locator);
  const carrier = await first;
  return {
    carrier,
    close: async () => {
      carrier.close();
      await listener.close();
    },
  };
}

/** What a run lacks, by the rules of the suite's validator. */
export function judge({ mode, expect }: Scenario, frames: readonly ObservedFrame[]): readonly string[] {
  const problems: string[] = [];
  // Progress is skipped by the suite's client.
  const seen = frames.filter(({ packet }) => !(mode === "suite_as_client" && packet.type === "PROGRESS"));
  const names = seen.map(({ frame }) => frame);
  for (const name of names) if (!expect.allowed_frames.includes(name)) problems.push(`${name} is not allowed`);
  let at = -1;
  for (const name of expect.frames) {
    at = names.indexOf(name, at + 1);
    if (at < 0) problems.push(`${name} is missing, or out of order`);
  }
  for (const { frame, direction, fields } of expect.frame_payload_invariants ?? []) {
    const matching = seen.filter((each) => each.frame === frame && each.direction === direction).map(payloadOf);
    const { event_type: eventType, ...always } = fields;
    for (const payload of matching) {
      for (const [name, value] of Object.entries(always)) {
        if (payload[name] !== value)
          problems.push(`${frame}: ${name} is ${String(payload[name])}, not ${String(value)}`);
      }
    }
    if (eventType !== undefined && !matching.some((payload) => payload["event_type"] === eventType)) {
      problems.push(`no ${frame} is ${String(eventType)}`);
    }
  }
  if (expect.result_drop_reason_code !== undefined) {
    const drops = seen.flatMap(({ packet }) => (packet.type === "RESULT_DROP_REASON" ? packet : []));
    const codes = drops.map(({ metadata }) => metadata.dropReasonCode);
    if (codes.length !== 1 || codes[0] !== expect.result_drop_reason_code) problems.push(`drop reasons: ${codes}`);
  }
  return problems;
}

/** A frame in the words of the suite's invariants. */
function payloadOf({ packet }: ObservedFrame): Readonly<Record<string, unknown>> {
  switch (packet.type) {
    case "PARTIAL_RESULT":
      return {
        body_encoding: jsonOf(packet.body) === undefined ? "bytes" : "utf-8-json-event",
        body_framing: "raw",
        events_per_frame: 1,
        typed_payload_envelope: false,
        sse_delimiters_allowed: false,
        event_type: jsonOf(packet.body)?.["type"],
      };
    case "FRAME_SUBMIT":
    case "RESULT_PUSH": {
      const { payloadKindBitmap, payloadFrameCount } = packet.metadata;
      const [payload] = decodeBody(packet.body, payloadKindBitmap, payloadFrameCount).payloads;
      const json = payload && jsonOf(payload.bytes);
      return {
        payload_frame_count: payloadFrameCount,
        payload_kind_bitmap: payloadKindBitmap,
        payload_kind: payload?.kind === 16 ? "structured_event" : "other",
        profile_id: payload?.profileId,
        schema_id: payload?.schemaId,
        schema_version: payload?.schemaVersion,
        stream_semantics: payload?.streamSemantics === 1 ? "snapshot" : "other",
        stream_semantics_value: payload?.streamSemantics,
        payload_encoding: json === undefined ? "bytes" : "utf-8-json",
        event_type: json?.["type"],
        envelope_schema_version: json?.["schema_version"],
      };
    }
    default:
      return { frame_id: packet.frameId };
  }
}

function jsonOf(bytes: Uint8Array): JsonObject | undefined {
  const parsed = parseObject(bytes);
  return parsed.ok ? parsed.value : undefined;
}
