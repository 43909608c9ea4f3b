import { readFileSync } from "node:fs";
import { type AnyPacket, type AnyPacketDraft, decodeBody, encodeBody, encodePacket, PayloadKind } from "@plenum/nnrp";
import { connect, type Listener, listen } from "@plenum/nnrp/node";
import { createProfileClient, type ProfileClient } from "@plenum/profile";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hello, RawClient, sessionOpen, submit } from "./testing/raw-client.ts";
import { type Bench, envelope, messages, setUp } from "./testing/set-up.ts";

/** What each bad input gets stands in the reference; every row is a test here, over TCP, beside another client. */

const page = readFileSync(new URL("../../../../../docs/reference/nnrp.md", import.meta.url), "utf8");
const section = page.split("\n## What each bad input gets\n")[1]?.split("\n## ")[0] ?? "";
const documented = new Map(
  section
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(2)
    .map((line) => line.replace(/^\| | \|$/g, "").split(" | ") as [string, string]),
);

let bench: Bench;
let listener: Listener;
let neighbour: ProfileClient;
let port: number;

beforeAll(async () => {
  bench = setUp({ door: { limits: { operationsPerSession: 4, handshakeMs: 50, frameBytes: 1_048_576 } } });
  // Goes on until it is stopped, where it is asked to.
  const { answer } = bench.backend;
  bench.backend.answer = async function* (request, signal) {
    yield* answer(request, signal);
    if (request.sampling.seed !== 1) return;
    await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  };
  listener = await listen(bench.door.server, "tcp://127.0.0.1:0");
  port = Number(new URL(listener.endpoint).port);
  neighbour = createProfileClient(await (await connect(listener.endpoint)).openSession());
});
afterAll(async () => {
  await neighbour.session.connection.close();
  await listener.close();
  await bench.door.server.close();
});

const models = envelope("models.list", {});
const body = { model: "m-tiny", messages };
const chat = (further: object = {}, members: object = {}) =>
  envelope("chat.completions.create", { ...body, ...further }, members);
const endless = chat({ stream: true, seed: 1 });
const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
const packet = (changes: (bytes: DataView) => void) => {
  const bytes = encodePacket({ type: "PING", sessionId: 1 });
  changes(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return bytes;
};
const odd = (payloads: Parameters<typeof encodeBody>[0]["payloads"] & object) => encodeBody({ payloads });
const tokenPayload = {
  profileId: 2,
  kind: PayloadKind.tokenChunk,
  flags: 0,
  schemaId: 0x1001,
  schemaVersion: 3,
  streamSemantics: 2,
  bytes: Uint8Array.of(1),
};

/** Inputs before a session is open. */
const onConnections: Readonly<Record<string, (client: RawClient) => Promise<void> | void>> = {
  "bytes that are no packet": (client) => client.bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(4)),
  "nothing, until the time for the hello is over": () => {},
  "half a packet, then the end": (client) => {
    client.bytes(encodePacket(hello).subarray(0, 60));
    client.end();
  },
  "a session's opening before the hello": (client) => client.send(sessionOpen()),
  "a second hello": async (client) => {
    await client.hello();
    client.send(hello);
  },
  "an unknown version in the header": async (client) => {
    await client.open();
    client.bytes(packet((bytes) => bytes.setUint8(4, 2)));
  },
  "an unknown message type": async (client) => {
    await client.open();
    client.bytes(packet((bytes) => bytes.setUint8(6, 0xee)));
  },
  "an unknown flag": async (client) => {
    await client.open();
    client.bytes(packet((bytes) => bytes.setUint32(8, 0x8000, true)));
  },
  "a packet larger than `nnrp.frame_bytes`": async (client) => {
    await client.open();
    client.bytes(packet((bytes) => bytes.setUint32(16, 2_000_000, true)));
  },
  "an unknown profile": async (client) => {
    await client.hello();
    client.send(sessionOpen({ profileId: 7, schemaId: 0, schemaVersion: 0 }));
  },
  "an unknown schema": async (client) => {
    await client.hello();
    client.send(sessionOpen({ schemaVersion: 99 }));
  },
  "more operations than `nnrp.operations_per_session`": async (client) => {
    await client.hello();
    client.send(sessionOpen({ maxInFlightOperations: 5 }));
  },
  "a submit before any session": async (client) => {
    await client.hello();
    client.send(submit({ sessionId: 1, event: models }));
    client.send(sessionOpen());
  },
};

/** Packets in an open session. */
const inSessions: Readonly<Record<string, (sessionId: number) => readonly AnyPacketDraft[]>> = {
  "a submit to a session that was never opened": (sessionId) => [submit({ sessionId: sessionId + 5, event: models })],
  "an operation id that is in use": (sessionId) => [
    submit({ sessionId, id: 5, event: endless }),
    submit({ sessionId, id: 5, frameId: 6, event: models }),
  ],
  "a frame id that is in use": (sessionId) => [
    submit({ sessionId, id: 5, event: endless }),
    submit({ sessionId, id: 6, frameId: 5, event: models }),
  ],
  "a cancel of another frame's operation": (sessionId) => [
    submit({ sessionId, id: 5, event: endless }),
    { type: "CANCEL", sessionId, frameId: 9, metadata: { operationId: 5n, sourceRole: 1, flags: 1 } },
  ],
  "a cancel of an unknown operation": (sessionId) => [
    { type: "CANCEL", sessionId, frameId: 9, metadata: { operationId: 77n, sourceRole: 1, flags: 1 } },
  ],
  "more operations than the session may have": (sessionId) => [
    ...[5, 6, 7, 8].map((id) => submit({ sessionId, id, event: endless })),
    submit({ sessionId, id: 9, event: models }),
  ],
  "a result, which only servers send": (sessionId) => [
    { type: "RESULT_PUSH", sessionId, frameId: 3, metadata: {}, body: new Uint8Array() },
  ],
  "a ping": (sessionId) => [{ type: "PING", sessionId }],
  "a payload of another kind": (sessionId) => [
    {
      ...submit({ sessionId, body: odd([tokenPayload]) }),
      metadata: { operationId: 1n, payloadKindBitmap: PayloadKind.tokenChunk, payloadFrameCount: 1 },
    } as AnyPacketDraft,
  ],
  "a body that is not laid out": (sessionId) => [submit({ sessionId, body: new TextEncoder().encode(models) })],
  "an empty body": (sessionId) => [submit({ sessionId, body: new Uint8Array() })],
  "text that is not UTF-8": (sessionId) => [submit({ sessionId, event: Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d) })],
  "text that is not JSON": (sessionId) => [submit({ sessionId, event: "{" })],
  "JSON that is no object": (sessionId) => [submit({ sessionId, event: "[1]" })],
  "JSON that is 10,000 levels deep": (sessionId) => [submit({ sessionId, event: `{"body":${deep}}` })],
  "no `schema_version`": (sessionId) => [
    submit({ sessionId, event: JSON.stringify({ operation: "models.list", body: {} }) }),
  ],
  "another `schema_version`": (sessionId) => [
    submit({ sessionId, event: models.replace("openai-compatible/1", "openai-compatible/2") }),
  ],
  "no `operation`": (sessionId) => [
    submit({ sessionId, event: JSON.stringify({ schema_version: "openai-compatible/1", body: {} }) }),
  ],
  "an unknown `operation`": (sessionId) => [submit({ sessionId, event: envelope("images.generate", {}) })],
  "a `request_id` that is a number": (sessionId) => [
    submit({ sessionId, event: envelope("models.list", {}, { request_id: 3 }) }),
  ],
  "an `nnrp` that is a list": (sessionId) => [submit({ sessionId, event: chat({}, { nnrp: [] }) })],
  "an `nnrp.timeout_ms` that is a text": (sessionId) => [
    submit({ sessionId, event: chat({}, { nnrp: { timeout_ms: "soon" } }) }),
  ],
  "an `nnrp.diagnostics` that is a number": (sessionId) => [
    submit({ sessionId, event: chat({}, { nnrp: { diagnostics: 1 } }) }),
  ],
  "an `nnrp.openai_chunk` that is a text": (sessionId) => [
    submit({ sessionId, event: chat({}, { nnrp: { openai_chunk: "yes" } }) }),
  ],
  "an `nnrp.authorization` that is an object": (sessionId) => [
    submit({ sessionId, event: chat({}, { nnrp: { authorization: {} } }) }),
  ],
  "an unknown `nnrp.on_disconnect`": (sessionId) => [
    submit({ sessionId, event: chat({}, { nnrp: { on_disconnect: "wait" } }) }),
  ],
  "a `body` that is a text": (sessionId) => [
    submit({ sessionId, event: JSON.stringify({ ...JSON.parse(models), body: "x" }) }),
  ],
  "a chat without `model`": (sessionId) => [
    submit({ sessionId, event: envelope("chat.completions.create", { messages }) }),
  ],
  "a chat without `messages`": (sessionId) => [
    submit({ sessionId, event: envelope("chat.completions.create", { model: "m-tiny" }) }),
  ],
  "a `temperature` that is a text": (sessionId) => [submit({ sessionId, event: chat({ temperature: "hot" }) })],
  "a `temperature` out of range": (sessionId) => [submit({ sessionId, event: chat({ temperature: 9 }) })],
  "an unknown model": (sessionId) => [submit({ sessionId, event: chat({ model: "nope" }) })],
  "embeddings of a model that makes none": (sessionId) => [
    submit({ sessionId, event: envelope("embeddings.create", { model: "m-tiny", input: "a" }) }),
  ],
  "events of an unknown response": (sessionId) => [
    submit({ sessionId, event: envelope("responses.events", { id: "resp_nope" }) }),
  ],
  "an `after` that is a text": (sessionId) => [
    submit({ sessionId, event: envelope("responses.events", { id: "resp_nope", after: "x" }) }),
  ],
};

/** What came back, in the reference's words. */
function describePacket(came: AnyPacket | undefined): string {
  if (came === undefined) return "the connection ends";
  switch (came.type) {
    case "SESSION_OPEN_ACK": {
      const { sessionStatus, sessionErrorCode } = came.metadata;
      if (sessionStatus === 0) return "nothing";
      return `the session is refused with 0x${sessionErrorCode.toString(16).padStart(8, "0")}`;
    }
    case "RESULT_PUSH": {
      const { metadata } = came;
      const [payload] = decodeBody(came.body, metadata.payloadKindBitmap, metadata.payloadFrameCount).payloads ?? [];
      const { error } = JSON.parse(new TextDecoder().decode(payload?.bytes));
      const param = error.param === undefined ? "" : `, param \`${error.param}\``;
      return `${metadata.statusCode} \`${error.code}\`${param}`;
    }
    default:
      return came.type;
  }
}

describe("what each bad input gets", () => {
  let client: RawClient;
  afterEach(() => client.destroy());

  async function neighbourIsWell(): Promise<void> {
    const answer = await neighbour.chat.create({ model: "m-tiny", messages });
    expect(answer).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
    expect(bench.faults).toEqual([]);
  }

  it.each(Object.entries(onConnections))("%s", async (name, act) => {
    client = new RawClient(port);
    await act(client);
    expect(describePacket(await client.next())).toBe(documented.get(name));
    await neighbourIsWell();
  });

  it.each(Object.entries(inSessions))("%s", async (name, packets) => {
    client = new RawClient(port);
    const sessionId = await client.open();
    // One request behind it: when it is answered, all that the input gets has come.
    const probe = submit({ sessionId, id: 100, frameId: 100, event: envelope("unknown", {}) });
    client.send(...packets(sessionId));
    const answers: string[] = [];
    await settled();
    client.send(probe);
    for (;;) {
      const came = await client.next();
      if (came?.frameId === 100) break;
      // The stream that is in the way goes on.
      if (came?.type !== "PARTIAL_RESULT") answers.push(describePacket(came));
      if (came === undefined) break;
    }
    expect(answers.join(", ") || "nothing").toBe(documented.get(name));
    await neighbourIsWell();
  });

  it("no row is left out", () => {
    expect([...documented.keys()].sort()).toEqual([...Object.keys(onConnections), ...Object.keys(inSessions)].sort());
  });
});

/** Requests are answered in steps of their own; the neighbour's whole chat takes longer than any refusal. */
async function settled(): Promise<void> {
  await neighbour.chat.create({ model: "m-tiny", messages });
}
