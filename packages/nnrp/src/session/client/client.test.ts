import { describe, expect, test } from "vitest";
import { encodeBody, eventPayload } from "../../codec/body-regions.ts";
import { encodePacket } from "../../codec/packet.ts";
import type { AnyPacket, AnyPacketDraft } from "../../codec/packet-types.ts";
import { captures, toHex } from "../../codec/testing/corpus.ts";
import type { ClientLimits } from "../limits.ts";
import { createCarrierPair } from "../memory.ts";
import { createServer } from "../server/server.ts";
import type { ServerOperation } from "../server/types.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { RawPeer } from "../testing/raw-peer.ts";
import { connectCarrier } from "./connection.ts";
import type { OperationEvent } from "./types.ts";

const ask = { body: { event: "{}" } };

/** A client and a server of this library, in one process. */
async function pair(limits: Partial<ClientLimits> = {}) {
  const clock = new ManualClock();
  const operations: ServerOperation[] = [];
  const server = createServer(
    {
      operation(operation) {
        operations.push(operation);
        return undefined;
      },
    },
    { clock },
  );
  const [ours, theirs] = createCarrierPair();
  server.accept(theirs);
  const connection = await connectCarrier(ours, { clock, limits });
  return {
    clock,
    server,
    operations,
    connection,
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

/** A client, and a server's end that does what a test says. */
async function withRawServer(limits: Partial<ClientLimits> = {}) {
  const clock = new ManualClock();
  const [ours, theirs] = createCarrierPair();
  const raw = new RawPeer(theirs);
  const connecting = connectCarrier(ours, { clock, limits });
  const hello = await raw.expect("CLIENT_HELLO");
  raw.send(helloAck);
  const connection = await connecting;
  const opening = connection.openSession();
  const open = await raw.expect("SESSION_OPEN");
  raw.send(openAck(1));
  const session = await opening;
  return {
    clock,
    raw,
    connection,
    session,
    hello,
    open,
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

const helloAck: AnyPacketDraft = {
  type: "SERVER_HELLO_ACK",
  metadata: { selectedVersionMajor: 1, acceptedProfileBitmap: 2, acceptedPayloadKindBitmap: 0x73, maxBodyBytes: 1e6 },
};
const openAck = (sessionId: number): AnyPacketDraft => ({
  type: "SESSION_OPEN_ACK",
  sessionId,
  metadata: { sessionId, acceptedProfileId: 2, maxInFlightOperations: 2, grantedOperationCredit: 2 },
});
const result = (sessionId: number, frameId: number): AnyPacketDraft => ({
  type: "RESULT_PUSH",
  sessionId,
  frameId,
  metadata: { statusCode: 200, payloadKindBitmap: 16, payloadFrameCount: 1 },
  body: encodeBody({ payloads: [eventPayload(new TextEncoder().encode("{}"))] }),
});

async function collect(operation: AsyncIterable<OperationEvent>): Promise<OperationEvent[]> {
  const events: OperationEvent[] = [];
  for await (const event of operation) events.push(event);
  return events;
}

test("says hello, opens and submits with the bytes that the recorded client sent", async () => {
  const { raw, session, hello, open } = await withRawServer();
  const frames = captures.find(({ scenario }) => scenario === "chat-stream")?.frames ?? [];
  const recorded = (message: string) => frames.find(([, name]) => name === message)?.[2] ?? "";
  const bytes = (packet: AnyPacket) => toHex(encodePacket(packet));
  expect(bytes(hello)).toBe(recorded("CLIENT_HELLO"));
  expect(bytes(open)).toBe(recorded("SESSION_OPEN"));
  const submitHex = recorded("FRAME_SUBMIT");
  const event = Buffer.from(submitHex, "hex").subarray(40 + 72 + 56);
  session.submit({ body: { event }, operationId: 901n });
  // tile_index_mode is 1 there, for no reason that concerns this side.
  const submit = await raw.expect("FRAME_SUBMIT");
  expect(bytes({ ...submit, metadata: { ...submit.metadata, tileIndexMode: 1 } } as AnyPacket)).toBe(submitHex);
  const closed = session.close();
  expect(bytes(await raw.expect("SESSION_CLOSE"))).toBe(recorded("SESSION_CLOSE"));
  raw.send({ type: "SESSION_CLOSE_ACK", sessionId: 1, metadata: { closeStatus: 2 } });
  await closed;
});

describe("an operation", () => {
  test("is read by a loop or a function, to its end", async () => {
    const { connection, operations, settled } = await pair();
    const session = await connection.openSession();
    const heard: string[] = [];
    const looped = session.submit(ask);
    const told = session.submit(ask, (event) => heard.push(event.type));
    await settled();
    for (const operation of operations) {
      operation.progress({ stage: 5, percent: 12.5 });
      operation.retryAfter({ retryAfterMs: 5 });
      operation.recoverableError({ code: 11, diagnostic: "busy" });
      operation.sendTraceContext({ traceId: 1n, spanId: 2n });
      operation.partial("ü");
      operation.result({ event: '"end"' }, { status: 299 });
    }
    const events = await collect(looped);
    const types = ["progress", "retry-after", "recoverable-error", "trace-context", "partial", "result"];
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(heard).toEqual(types);
    expect(events[0]).toMatchObject({ stage: 5, percent: 12.5 });
    expect(events[2]).toMatchObject({ code: 11, diagnostic: "busy" });
    expect(events.at(-1)).toMatchObject({ status: 299 });
    expect(await told.ended).toMatchObject({ type: "result" });
    expect(operations[0]?.payloads).toHaveLength(1);
  });

  test("is cancelled by its signal, by leaving the loop, and before it was sent", async () => {
    const { connection, operations, settled } = await pair();
    const session = await connection.openSession({ maxInFlight: 1 });
    const controller = new AbortController();
    const first = session.submit({ ...ask, signal: controller.signal });
    const waiting = session.submit({ ...ask, signal: controller.signal });
    expect([first.queued, waiting.queued]).toEqual([false, true]);
    await settled();
    controller.abort();
    expect(await first.ended).toMatchObject({ type: "dropped", reason: 3 });
    expect(await waiting.ended).toMatchObject({ type: "failed", error: { code: "cancelled" } });
    expect(await session.submit({ ...ask, signal: controller.signal }).ended).toMatchObject({ type: "failed" });

    const left = session.submit(ask);
    await settled();
    operations.at(-1)?.partial("x");
    for await (const event of left) if (event.type === "partial") break;
    expect(await left.ended).toMatchObject({ type: "dropped", reason: 3 });
  });

  test("ends by itself when the peer never answers a cancel", async () => {
    const { clock, raw, session } = await withRawServer({ cancelMs: 100 });
    const operation = session.submit(ask);
    await raw.expect("FRAME_SUBMIT");
    operation.cancel();
    operation.cancel();
    await raw.expect("CANCEL");
    clock.advance(100);
    expect(await operation.ended).toMatchObject({ type: "failed", error: { code: "timeout" } });
    // Its late end is nothing.
    raw.send(result(1, 1), { type: "PING", sessionId: 1 });
    await raw.expect("PONG");
  });

  test("waits while the peer has enough: in flight, paused, credit", async () => {
    const { raw, session, settled } = await withRawServer();
    const operations = Array.from({ length: 5 }, () => session.submit(ask));
    expect(operations.map(({ queued }) => queued)).toEqual([false, false, true, true, true]);
    await settled();
    expect(raw.waiting).toEqual(["FRAME_SUBMIT", "FRAME_SUBMIT"]);
    raw.send({ type: "BACKPRESSURE", sessionId: 1, metadata: { scopeId: 1n, pressureLevel: 3 } }, result(1, 1));
    await settled();
    expect(operations[2]?.queued).toBe(true);
    raw.send({ type: "CREDIT_UPDATE", sessionId: 1, metadata: { scopeId: 1n, creditWindow: 1n } });
    await settled();
    expect(operations[2]?.queued).toBe(true);
    raw.send(result(1, 2));
    await settled();
    expect(operations.map(({ queued }) => queued)).toEqual([false, false, false, true, true]);
  });

  test("asks for as many partials as its reader takes", async () => {
    const { connection, operations, settled } = await pair();
    const session = await connection.openSession();
    const operation = session.submit({ ...ask, creditWindow: 4 });
    await settled();
    let sent = 0;
    while (operations[0]?.partial(`${sent}`)) sent += 1;
    expect(sent + 1).toBe(4);
    let read = 0;
    for await (const event of operation) {
      if (event.type !== "partial") continue;
      read += 1;
      await settled();
      if (operations[0]?.writable) {
        if (sent >= 20) operations[0].result(undefined);
        else while (operations[0].partial("x")) sent += 1;
      }
    }
    expect(read).toBeGreaterThanOrEqual(20);
  });

  test("a peer's ABORT, ERROR, SUPERSEDE and drops end it", async () => {
    const { raw, session, settled } = await withRawServer();
    const endOf = async (answer: (frameId: number, operationId: bigint) => AnyPacketDraft) => {
      const operation = session.submit(ask);
      await raw.expect("FRAME_SUBMIT");
      raw.send(answer(operation.frameId, operation.id));
      return operation.ended;
    };
    const sessionId = 1;
    const about = (frameId: number) => ({ sessionId, frameId });
    expect(
      await endOf((frame, operationId) => ({ type: "ABORT", ...about(frame), metadata: { operationId } })),
    ).toMatchObject({ type: "failed", error: { code: "aborted" } });
    expect(await endOf((frame) => ({ type: "RESULT_DROP", ...about(frame) }))).toMatchObject({
      type: "dropped",
      reason: 0,
    });
    expect(
      await endOf((frame, oldOperationId) => ({
        type: "SUPERSEDE",
        ...about(frame),
        metadata: { oldOperationId, dropReasonCode: 2 },
      })),
    ).toMatchObject({ type: "dropped", reason: 2 });
    expect(
      await endOf((frame) => ({ type: "ERROR", ...about(frame), metadata: { errorCode: 11, errorScope: 2 } })),
    ).toMatchObject({ type: "failed", error: { nnrpCode: 11 } });
    await settled();
    expect(raw.waiting).toEqual([]);
  });
});

describe("a session", () => {
  test("ends what is live when it closes, and sends nothing after", async () => {
    const { connection, operations, settled } = await pair();
    const session = await connection.openSession();
    const live = session.submit(ask);
    await settled();
    await session.close();
    expect(await live.ended).toMatchObject({ type: "dropped", reason: 3 });
    expect(operations[0]?.finished).toBe(true);
    expect(() => session.submit(ask)).toThrow("closed");
    live.cancel();
    session.sendTraceContext({ traceId: 1n, spanId: 1n });
    expect((await connection.openSession()).id).toBe(2);
  });

  test("is resumed by its ticket", async () => {
    const { connection, server, clock } = await pair();
    const { resumeTicket } = await connection.openSession({ allowResume: true });
    if (resumeTicket === undefined) throw new Error("no ticket");
    connection.destroy();
    const [ours, theirs] = createCarrierPair();
    await new Promise(setImmediate);
    server.accept(theirs);
    const again = await connectCarrier(ours, { clock });
    const session = await again.openSession({ resume: resumeTicket });
    expect([session.resumed, session.id]).toEqual([true, resumeTicket.sessionId]);
    expect(session.resumeTicket?.token).not.toEqual(resumeTicket.token);
    await expect(again.openSession({ resume: resumeTicket })).rejects.toMatchObject({ nnrpCode: 0x10007 });
  });

  test("an open that was given up does not become the next one", async () => {
    const { raw, connection } = await withRawServer();
    const controller = new AbortController();
    const first = connection.openSession({ signal: controller.signal });
    const second = connection.openSession();
    await raw.expect("SESSION_OPEN");
    controller.abort();
    await expect(first).rejects.toMatchObject({ code: "cancelled" });
    await raw.expect("SESSION_OPEN");
    raw.send(openAck(5), openAck(6));
    expect((await second).id).toBe(6);
    expect((await raw.expect("SESSION_CLOSE")).sessionId).toBe(5);
  });

  test("takes an id again that the server had used before", async () => {
    const { raw, connection, session } = await withRawServer();
    const closed = session.close();
    await raw.expect("SESSION_CLOSE");
    raw.send({ type: "SESSION_CLOSE_ACK", sessionId: 1, metadata: { closeStatus: 2 } });
    await closed;
    const opening = connection.openSession();
    await raw.expect("SESSION_OPEN");
    raw.send(openAck(1));
    expect((await opening).id).toBe(1);
  });

  test("the server may close it", async () => {
    const { raw, session } = await withRawServer();
    const live = session.submit(ask);
    await raw.expect("FRAME_SUBMIT");
    raw.send({ type: "SESSION_CLOSE", sessionId: 1, metadata: { closeReason: 2 } });
    await raw.expect("SESSION_CLOSE_ACK");
    expect(await session.closed).toMatchObject({ code: "session-closed" });
    expect(await live.ended).toMatchObject({ type: "failed", error: { code: "session-closed" } });
  });
});

describe("a connection", () => {
  test("fails by name when nobody answers, refuses, or hangs up", async () => {
    const clock = new ManualClock();
    const [silent] = createCarrierPair();
    const waiting = connectCarrier(silent, { clock });
    clock.advance(10_000);
    await expect(waiting).rejects.toMatchObject({ code: "timeout" });
    const [ours, theirs] = createCarrierPair();
    const refused = connectCarrier(ours, { clock });
    theirs.start({ data: () => theirs.close(), drained() {}, ended() {} });
    await expect(refused).rejects.toMatchObject({ code: "connect-failed" });
  });

  test("that is lost ends its sessions and operations", async () => {
    const { raw, connection, session } = await withRawServer();
    const live = session.submit(ask);
    await raw.expect("FRAME_SUBMIT");
    raw.close();
    expect(await live.ended).toMatchObject({ type: "failed", error: { code: "connection-closed" } });
    expect(await connection.closed).toMatchObject({ code: "connection-closed" });
    expect(await session.closed).toMatchObject({ code: "connection-closed" });
    await expect(connection.openSession()).rejects.toMatchObject({ code: "connection-closed" });
  });

  test("survives stray packets, up to a number; bytes that are no packets end it", async () => {
    const { raw, connection, session, settled } = await withRawServer({ protocolErrors: 3 });
    raw.send(
      { type: "PROGRESS", sessionId: 9, frameId: 1, metadata: { operationId: 1n } },
      { type: "RESULT_DROP", sessionId: 1, frameId: 77 },
      openAck(8),
      { type: "FLOW_UPDATE" },
      { type: "CACHE_INVALIDATE", sessionId: 1 },
    );
    await settled();
    expect([connection.isClosed, session.isClosed]).toEqual([false, false]);
    raw.bytes(new TextEncoder().encode(`HTTP/1.1 200 OK${"x".repeat(60)}`));
    expect(await connection.closed).toMatchObject({ code: "protocol-error" });
  });

  test("does not read on while nobody reads its events", async () => {
    const { connection, operations, settled } = await pair({ unreadBytes: 10_000 });
    const session = await connection.openSession();
    const operation = session.submit(ask);
    await settled();
    for (let count = 0; count < 100; count += 1) {
      operations[0]?.partial("x".repeat(500));
      await settled();
    }
    operations[0]?.result(undefined);
    await settled();
    expect(operation.finished).toBe(false);
    const events = await collect(operation);
    expect([events.length, events.at(-1)?.type]).toEqual([101, "result"]);
  });
});
