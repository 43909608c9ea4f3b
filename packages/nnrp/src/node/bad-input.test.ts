import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { encodePacket } from "../codec/packet.ts";
import type { AnyPacketDraft } from "../codec/packet-types.ts";
import { captures, fromHex } from "../codec/testing/corpus.ts";
import { parseEndpoint } from "../endpoint/endpoint.ts";
import { createServer } from "../session/server/server.ts";
import type { NnrpServer, ServerOperation } from "../session/server/types.ts";
import { hello, RawPeer, sessionOpen, submit } from "../session/testing/raw-peer.ts";
import { openCarrier } from "./connect.ts";
import { listen } from "./listen.ts";
import type { Listener } from "./types.ts";

/** What peers send wrongly, to a real server; a neighbour on another connection must not notice any of it. */

let server: NnrpServer;
let tcp: Listener;
let webSocket: Listener;
const operations: ServerOperation[] = [];

beforeAll(async () => {
  server = createServer(
    {
      operation(operation) {
        operations.push(operation);
        if (operation.payloads === undefined) operation.result({ event: '{"type":"refused"}' }, { status: 400 });
        else operation.result({ event: '{"type":"answered"}' });
        return undefined;
      },
    },
    { limits: { frameBytes: 1024 * 1024 } },
  );
  tcp = await listen(server, "tcp://127.0.0.1:0");
  webSocket = await listen(server, "ws://127.0.0.1:0/nnrp");
});
afterAll(async () => {
  await tcp.close();
  await webSocket.close();
  await server.close();
});

async function peerAt(endpoint: string): Promise<RawPeer> {
  const parsed = parseEndpoint(endpoint);
  if (parsed.kind !== "carrier") throw new Error("no carrier");
  return new RawPeer(await openCarrier(parsed.locator));
}

async function isServed(peer: RawPeer, sessionId: number, id: number): Promise<void> {
  peer.send(submit(sessionId, id));
  expect((await peer.expect("RESULT_PUSH")).frameId).toBe(id);
}

/** Runs `use` beside a neighbour on a connection of its own, which is served before and after. */
async function besideNeighbour(use: () => Promise<void>): Promise<void> {
  const neighbour = await peerAt(tcp.endpoint);
  const id = await neighbour.open();
  await isServed(neighbour, id, 1);
  await use();
  await isServed(neighbour, id, 2);
  neighbour.close();
  await neighbour.ended();
}

const patched = (draft: AnyPacketDraft, offset: number, ...values: number[]): Uint8Array => {
  const bytes = encodePacket(draft);
  bytes.set(values, offset);
  return bytes;
};
const probeOpen = { type: "SESSION_OPEN" } as const;

describe("ends the connection without a word", () => {
  test.each<[string, Uint8Array | AnyPacketDraft]>([
    ["an HTTP request", new TextEncoder().encode(`GET / HTTP/1.1\r\nhost: x\r\n${"a".repeat(30)}\r\n\r\n`)],
    ["wrong magic", patched(hello, 0, 0x58)],
    ["another major version", patched(hello, 4, 2)],
    ["another wire format", patched(hello, 5, 1)],
    ["another header length", patched(hello, 7, 41)],
    ["an unknown header flag", patched(hello, 8, 0x40)],
    ["an unknown message type", patched(hello, 6, 0x7f)],
    ["lengths of 4 GiB", patched(hello, 12, 255, 255, 255, 255, 255, 255, 255, 255)],
    ["a packet over the limit before the hello", patched(hello, 16, 0, 0, 16, 0)],
    ["a short hello", patched(hello, 12, 63)],
    [
      "a hello without version 1",
      { ...hello, metadata: { ...hello.metadata, minVersionMajor: 2, maxVersionMajor: 3 } },
    ],
    ["a hello without wire format 0", { ...hello, metadata: { ...hello.metadata, supportedWireFormatBitmap: 2 } }],
    ["a hello without profiles", { ...hello, metadata: { ...hello.metadata, supportedProfileBitmap: 0 } }],
    ["a hello with the tensor profile only", { ...hello, metadata: { ...hello.metadata, supportedProfileBitmap: 1 } }],
    ["a hello with a credential", { ...hello, metadata: { ...hello.metadata, authBytes: 5 }, body: new Uint8Array(5) }],
    ["PING before the hello", { type: "PING" }],
    ["SESSION_OPEN before the hello", probeOpen],
    ["FRAME_SUBMIT before the hello", submit(1, 1)],
  ])("%s", (_, input) =>
    besideNeighbour(async () => {
      const peer = await peerAt(tcp.endpoint);
      if (input instanceof Uint8Array) peer.bytes(input);
      else peer.send(input);
      expect(await peer.next()).toBeUndefined();
    }),
  );

  test.each<[string, Uint8Array | AnyPacketDraft]>([
    ["a second hello", hello],
    ["FRAME_SUBMIT for session 0", submit(0, 1)],
    ["FRAME_SUBMIT before its session is open", submit(2, 1)],
    ["a session that never was", { type: "FRAME_CANCEL", sessionId: 99, frameId: 1 }],
    ["CLOSE", { type: "CLOSE" }],
    ["an unknown message type", patched(submit(1, 1), 6, 0x7f)],
    ["a body over the limit", patched(submit(1, 1), 16, 0, 0, 0, 1)],
    ["half a packet, then the end", encodePacket(submit(1, 1)).slice(0, 60)],
  ])("after the hello: %s", (_, input) =>
    besideNeighbour(async () => {
      const peer = await peerAt(tcp.endpoint);
      expect(await peer.open()).toBe(1);
      if (input instanceof Uint8Array) peer.bytes(input);
      else peer.send(input);
      if (input instanceof Uint8Array && input.byteLength === 60) peer.close();
      expect(await peer.next()).toBeUndefined();
    }),
  );

  test("everything that was recorded to be wrong before a hello", () =>
    besideNeighbour(async () => {
      const scenarios = captures.filter(
        ({ scenario, transport }) => /^server-(bad|hello|oversized-u32|http)/.test(scenario) && transport === "tcp",
      );
      expect(scenarios.length).toBeGreaterThan(8);
      for (const { frames } of scenarios) {
        const peer = await peerAt(tcp.endpoint);
        for (const [way, , hex] of frames) if (way === "c2s") peer.bytes(fromHex(hex));
        await peer.ended();
      }
    }));
});

describe("costs no more than the packet", () => {
  test.each<[string, (sessionId: number) => Uint8Array | AnyPacketDraft]>([
    [
      "CANCEL of an operation that never was",
      (sessionId) => ({ type: "CANCEL", sessionId, frameId: 9, metadata: { operationId: 9n } }),
    ],
    ["FRAME_CANCEL of a frame that never was", (sessionId) => ({ type: "FRAME_CANCEL", sessionId, frameId: 9 })],
    [
      "EXPIRE_AT of an operation that never was",
      (sessionId) => ({ type: "EXPIRE_AT", sessionId, frameId: 9, metadata: { operationId: 9n, deadlineUnixMs: 1n } }),
    ],
    [
      "a DEADLINE in the past, before its submit",
      (sessionId) => ({ type: "DEADLINE", sessionId, frameId: 9, metadata: { operationId: 9n, deadlineUnixMs: 1n } }),
    ],
    ["a submit with one metadata byte too few", (sessionId) => shortSubmit(sessionId)],
    [
      "a reserved byte",
      (sessionId) => patched({ type: "CANCEL", sessionId, frameId: 9, metadata: { operationId: 9n } }, 64, 1),
    ],
    [
      "an unassigned role",
      (sessionId) => patched({ type: "CANCEL", sessionId, frameId: 9, metadata: { operationId: 9n } }, 58, 9),
    ],
    ["RESULT_PUSH from a client", (sessionId) => ({ type: "RESULT_PUSH", sessionId, frameId: 9 })],
    ["ERROR in a session", (sessionId) => ({ type: "ERROR", sessionId })],
    ["SESSION_OPEN_ACK from a client", (sessionId) => ({ type: "SESSION_OPEN_ACK", sessionId })],
    ["OBJECT_RELEASE", (sessionId) => ({ type: "OBJECT_RELEASE", sessionId })],
  ])("%s", (_, make) =>
    besideNeighbour(async () => {
      const peer = await peerAt(tcp.endpoint);
      const [first, second] = [await peer.open(), await peer.openSession()];
      const input = make(first);
      if (input instanceof Uint8Array) peer.bytes(input);
      else peer.send(input);
      await isServed(peer, second, 1);
      await isServed(peer, first, 1);
      peer.close();
    }),
  );

  test("connection scope: ERROR, PONG and FLOW_UPDATE are nothing, PING is answered", () =>
    besideNeighbour(async () => {
      const peer = await peerAt(tcp.endpoint);
      const id = await peer.open();
      peer.send(
        { type: "ERROR" },
        { type: "PONG" },
        { type: "FLOW_UPDATE" },
        { type: "PING" },
        { type: "PING", sessionId: id },
      );
      expect((await peer.expect("PONG")).sessionId).toBe(0);
      expect((await peer.expect("PONG")).sessionId).toBe(id);
      await isServed(peer, id, 1);
    }));

  test("what this side does not do is refused by its answer", async () => {
    const peer = await peerAt(tcp.endpoint);
    const sessionId = await peer.open();
    peer.send({ type: "SESSION_PATCH", sessionId, metadata: { patchMask: 3 } });
    expect((await peer.expect("SESSION_PATCH_ACK")).metadata).toMatchObject({
      status: 2,
      rejectReason: 1,
      rejectedMask: 3,
    });
    peer.send({ type: "SESSION_MIGRATE", sessionId, metadata: { oldTransportId: 2, newTransportId: 1 } });
    expect((await peer.expect("SESSION_MIGRATE_ACK")).metadata.acceptCode).toBe(1);
    peer.send({ type: "CACHE_REFERENCE", sessionId, metadata: { namespace: 1, profileId: 2, keyHi: 3n, keyLo: 4n } });
    expect((await peer.expect("CACHE_MISS")).metadata).toMatchObject({
      namespace: 1,
      profileId: 2,
      keyHi: 3n,
      keyLo: 4n,
      missReason: 1,
    });
    // A reserved session flag: told where it can be.
    peer.bytes(patched(sessionOpen(), 47, 0x10));
    expect((await peer.expect("SESSION_OPEN_ACK")).metadata.sessionStatus).toBe(1);
    await isServed(peer, sessionId, 1);
  });

  test("bodies that are not laid out, or of other kinds, reach the application, which answers", async () => {
    const peer = await peerAt(tcp.endpoint);
    const sessionId = await peer.open();
    const body = new TextEncoder().encode('{"schema_version":"openai-compatible/1"}');
    peer.send({ ...submit(sessionId, 1), body } as AnyPacketDraft);
    expect((await peer.expect("RESULT_PUSH")).metadata.statusCode).toBe(400);
    peer.send(submit(sessionId, 2, { payloadFrameCount: 2 }));
    expect((await peer.expect("RESULT_PUSH")).metadata.statusCode).toBe(400);
    await isServed(peer, sessionId, 3);
  });
});

/** 71 bytes of metadata, with the lengths to match. */
function shortSubmit(sessionId: number): Uint8Array {
  const bytes = encodePacket(submit(sessionId, 9));
  const short = Buffer.concat([bytes.subarray(0, 111), bytes.subarray(112)]);
  short.writeUInt32LE(71, 12);
  return short;
}

describe("a WebSocket", () => {
  const opened = (endpoint: string, protocols: string[] = []) =>
    new Promise<WebSocket>((resolve, reject) => {
      const socket = new WebSocket(endpoint, protocols);
      socket.once("open", () => resolve(socket)).once("error", reject);
    });
  const closeCode = (socket: WebSocket) => new Promise<number>((resolve) => socket.once("close", resolve));

  test.each<[string, Uint8Array | string, number]>([
    ["a text message", "hello", 1003],
    ["two packets in one message", Buffer.concat([encodePacket(hello), encodePacket(sessionOpen())]), 1002],
    ["a message that is shorter than its packet", encodePacket(hello).slice(0, 80), 1002],
    ["an empty message", new Uint8Array(0), 1002],
    ["a message over the limit", new Uint8Array(1024 * 1024 + 1), 1009],
  ])("is closed for %s", (_, message, code) =>
    besideNeighbour(async () => {
      const socket = await opened(webSocket.endpoint);
      socket.send(message);
      expect(await closeCode(socket)).toBe(code);
    }),
  );

  test("is not opened at another path, and plain requests are told so", async () => {
    await expect(opened(webSocket.endpoint.replace("/nnrp", "/other"))).rejects.toThrow("404");
    const response = await fetch(webSocket.endpoint.replace("ws:", "http:"));
    expect(response.status).toBe(426);
  });
});

test("a peer that floods without reading is not read either, and its neighbour is served", () =>
  besideNeighbour(async () => {
    const { hostname, port } = new URL(tcp.endpoint);
    const socket = connectSocket({ host: hostname, port: Number(port) });
    socket.on("error", () => {});
    socket.pause();
    socket.write(encodePacket(hello));
    const pings = Buffer.concat(Array.from({ length: 2000 }, () => encodePacket({ type: "PING" })));
    let written = 0;
    // The writer stalls when neither the kernel nor the server takes more.
    while (socket.writableLength < 4 * 1024 * 1024 && written < 200 * 1024 * 1024) {
      socket.write(pings);
      written += pings.byteLength;
      await new Promise(setImmediate);
    }
    expect(written).toBeLessThan(200 * 1024 * 1024);
    socket.destroy();
  }));
