import { describe, expect, test, vi } from "vitest";
import type { AnyPacketDraft } from "../../codec/packet-types.ts";
import { DropReason, SessionErrorCode, SessionFlags } from "../../codec/registries.ts";
import type { ServerLimits } from "../limits.ts";
import { createCarrierPair } from "../memory.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { hello, RawPeer, sessionOpen, submit } from "../testing/raw-peer.ts";
import { createServer } from "./server.ts";
import type { OperationListener, ServerHandler, ServerOperation, StopCause } from "./types.ts";

/** A server whose operations stay open until a test ends them. */
function start(limits: Partial<ServerLimits> = {}, handler: Partial<ServerHandler> = {}) {
  const clock = new ManualClock();
  const operations: ServerOperation[] = [];
  const stops: StopCause[] = [];
  const logged: string[] = [];
  const listener: OperationListener = { stop: (cause) => stops.push(cause) };
  const server = createServer(
    {
      operation(operation) {
        operations.push(operation);
        return listener;
      },
      log: ({ event, detail }) => logged.push(detail ?? event),
      ...handler,
    },
    { limits, clock },
  );
  const connect = () => {
    const [ours, theirs] = createCarrierPair();
    server.accept(ours);
    return new RawPeer(theirs);
  };
  /** Everything in flight has arrived. */
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { server, clock, operations, stops, logged, listener, connect, settled };
}

const control = (type: "CANCEL" | "ABORT", sessionId: number, id: number, operationId = BigInt(id + 100)) =>
  ({ type, sessionId, frameId: id, metadata: { operationId, reasonCode: 1, sourceRole: 1, flags: 1 } }) as const;
const times = (type: "DEADLINE" | "EXPIRE_AT", sessionId: number, id: number, unixMs: number, flags = 0) =>
  ({
    type,
    sessionId,
    frameId: id,
    metadata: { operationId: BigInt(id + 100), deadlineUnixMs: BigInt(unixMs), flags },
  }) as const;

describe("an operation", () => {
  test("partials are counted, a result ends it, and nothing follows", async () => {
    const { operations, connect, settled } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1));
    await settled();
    const [operation] = operations;
    expect(operation?.payloads?.[0]?.bytes).toEqual(new TextEncoder().encode('{"ask":1}'));
    operation?.partial("ä");
    operation?.partial(new Uint8Array([1]), { final: true });
    operation?.result({ event: "{}" }, { status: 201, totalMs: 1e9 });
    expect([operation?.partial("x"), operation?.result(undefined), operation?.drop(1), operation?.finished]).toEqual([
      false,
      false,
      false,
      true,
    ]);
    const first = await peer.expect("PARTIAL_RESULT");
    expect(first).toMatchObject({ frameId: 1, metadata: { operationId: 101n, resultSequence: 1n, deltaSequence: 1n } });
    expect(new TextDecoder().decode(first.body)).toBe("ä");
    expect((await peer.expect("PARTIAL_RESULT")).metadata).toMatchObject({ resultSequence: 2n, flags: 1 });
    expect((await peer.expect("RESULT_PUSH")).metadata).toMatchObject({
      statusCode: 201,
      serverTotalMs: 65535,
      payloadKindBitmap: 16,
      payloadFrameCount: 1,
    });
    await settled();
    expect(peer.waiting).toEqual([]);
  });

  test.each(["CANCEL", "ABORT"] as const)("%s stops it and is answered once; a late one is nothing", async (type) => {
    const { operations, stops, connect, settled, logged } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), control(type, id, 1), control(type, id, 1));
    const drop = await peer.expect("RESULT_DROP_REASON");
    expect(drop.metadata).toMatchObject({ operationId: 101n, dropReasonCode: DropReason.peerCancelled, sourceRole: 2 });
    expect(stops).toEqual([{ kind: type.toLowerCase(), reason: 1, diagnostic: "" }]);
    expect(operations[0]?.partial("late")).toBe(false);
    peer.send(control(type, id, 1), { type: "FRAME_CANCEL", sessionId: id, frameId: 1 });
    await settled();
    expect(peer.waiting).toEqual([]);
    expect(logged).toEqual(["connection-opened"]);
  });

  test("CANCEL of operation 0 stops every operation of the session", async () => {
    const { stops, connect } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), submit(id, 2), control("CANCEL", id, 0, 0n));
    await peer.expect("RESULT_DROP_REASON");
    await peer.expect("RESULT_DROP_REASON");
    expect(stops).toHaveLength(2);
  });

  test("its owner may end it in its own words when it is stopped", async () => {
    const { connect } = start(
      {},
      {
        operation: (operation) => ({
          stop() {
            operation.session.sendTraceContext({ traceId: 1n, spanId: 2n });
            operation.drop(DropReason.superseded, "mine");
          },
        }),
      },
    );
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), control("CANCEL", id, 1));
    expect((await peer.expect("TRACE_CONTEXT")).frameId).toBe(0);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata.dropReasonCode).toBe(DropReason.superseded);
  });

  test("a DEADLINE before the submit holds from the start, one behind it too", async () => {
    const { clock, operations, stops, connect, settled } = start();
    const peer = connect();
    const id = await peer.open();
    const now = clock.now();
    peer.send(times("DEADLINE", id, 1, now + 500), submit(id, 1), submit(id, 2), times("DEADLINE", id, 2, now + 900));
    await settled();
    expect(operations.map(({ deadline }) => deadline?.unixMs)).toEqual([now + 500, now + 900]);
    clock.advance(499);
    expect(stops).toEqual([]);
    clock.advance(1);
    expect(stops).toEqual([{ kind: "deadline" }]);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 101n, dropReasonCode: 1 });
    clock.advance(400);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 102n, dropReasonCode: 1 });
  });

  test("EXPIRE_AT stops it only with a flag", async () => {
    const { clock, stops, connect, settled, operations } = start();
    const peer = connect();
    const id = await peer.open();
    const at = clock.now() + 100;
    peer.send(submit(id, 1), times("EXPIRE_AT", id, 1, at), submit(id, 2), times("EXPIRE_AT", id, 2, at, 1));
    await settled();
    clock.advance(1000);
    expect(stops).toEqual([{ kind: "expired" }]);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata.operationId).toBe(102n);
    expect(operations[0]?.result(undefined)).toBe(true);
  });

  test("SUPERSEDE ends the old one when the new one comes, or at once", async () => {
    const { operations, stops, connect, settled } = start();
    const peer = connect();
    const id = await peer.open();
    const supersede = (old: number, by: number, flags: number): AnyPacketDraft => ({
      type: "SUPERSEDE",
      sessionId: id,
      frameId: old,
      metadata: { oldOperationId: BigInt(old + 100), newOperationId: BigInt(by + 100), dropReasonCode: 2, flags },
    });
    peer.send(submit(id, 1), supersede(1, 2, 0));
    await settled();
    expect(stops).toEqual([]);
    peer.send(submit(id, 2));
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 101n, dropReasonCode: 2 });
    expect(operations[1]?.supersedes).toBe(101n);
    peer.send(supersede(2, 3, 1), submit(id, 3));
    expect((await peer.expect("RESULT_DROP_REASON")).metadata.operationId).toBe(102n);
    await settled();
    expect(operations[2]?.supersedes).toBe(102n);
  });

  test("hears priority, budget, trace context, credit and backpressure", async () => {
    const heard: unknown[] = [];
    const { connect, settled } = start(
      {},
      {
        operation: () => ({
          priority: (update) => heard.push(update),
          budget: (budget) => heard.push(budget.tokens),
          traceContext: (context) => heard.push(context.spanId),
          credit: (window) => heard.push(window),
          backpressure: (pressure) => heard.push(pressure.level),
        }),
      },
    );
    const peer = connect();
    const sessionId = await peer.open();
    const about = { sessionId, frameId: 1 };
    const operationId = 101n;
    peer.send(
      submit(sessionId, 1),
      { type: "PRIORITY_UPDATE", ...about, metadata: { operationId, priorityClass: 10, priorityDelta: -3 } },
      { type: "BUDGET_UPDATE", ...about, metadata: { operationId, tokenBudget: 7, flags: 1 } },
      { type: "TRACE_CONTEXT", ...about, metadata: { traceId: 1n, spanId: 2n } },
      { type: "CREDIT_UPDATE", ...about, metadata: { scopeId: operationId, creditWindow: 3n, flags: 2 } },
      { type: "BACKPRESSURE", ...about, metadata: { scopeId: operationId, pressureLevel: 3, flags: 2 } },
    );
    await settled();
    expect(heard).toEqual([{ priorityClass: 10, delta: -3 }, 7, 2n, 3n, 3]);
  });

  test("credit and pauses of the peer stop its writer, until they end", async () => {
    const drained = vi.fn();
    const { operations, connect, settled, clock } = start(
      {},
      {
        operation(operation) {
          operations.push(operation);
          return { drain: drained };
        },
      },
    );
    const peer = connect();
    const sessionId = await peer.open();
    const about = { sessionId, frameId: 1, metadata: { scopeId: 101n, flags: 2 } };
    peer.send(submit(sessionId, 1), {
      ...about,
      type: "CREDIT_UPDATE",
      metadata: { ...about.metadata, creditWindow: 2n },
    });
    await settled();
    const [operation] = operations;
    expect([operation?.partial("a"), operation?.partial("b"), operation?.writable]).toEqual([true, false, false]);
    peer.send({ ...about, type: "CREDIT_UPDATE", metadata: { ...about.metadata, creditWindow: 9n } });
    await settled();
    expect([drained.mock.calls.length, operation?.writable]).toEqual([1, true]);
    const paused = { pressureLevel: 3, retryAfterMs: 50 };
    peer.send({ ...about, type: "BACKPRESSURE", metadata: { ...about.metadata, ...paused } });
    await settled();
    expect(operation?.writable).toBe(false);
    clock.advance(50);
    expect([drained.mock.calls.length, operation?.writable]).toEqual([2, true]);
    peer.send({ type: "BACKPRESSURE", sessionId, metadata: { scopeId: BigInt(sessionId), pressureLevel: 3 } });
    await settled();
    expect(operation?.writable).toBe(false);
    peer.send({ type: "CREDIT_UPDATE", sessionId, metadata: { scopeId: BigInt(sessionId), creditWindow: 4n } });
    await settled();
    expect(operation?.writable).toBe(true);
  });

  test("a peer that does not read stops its own writer, and no other", async () => {
    const { operations, connect, settled } = start({ writableBytes: 1000, bufferedBytes: 10_000 });
    const drained: string[] = [];
    const slow = connect();
    const quick = connect();
    const slowId = await slow.open();
    const quickId = await quick.open();
    slow.send(submit(slowId, 1));
    await settled();
    quick.send(submit(quickId, 1));
    await settled();
    const [slowOne, quickOne] = operations;
    Object.assign(slowOne ?? {}, { listener: { drain: () => drained.push("slow") } });
    slow.pause();
    let written = 0;
    while (slowOne?.partial("x".repeat(100))) written += 1;
    expect(written).toBe(Math.floor(1000 / (40 + 40 + 100)));
    await settled();
    expect([slowOne?.writable, quickOne?.writable, drained]).toEqual([false, true, []]);
    slow.resume();
    await settled();
    expect([slowOne?.writable, drained]).toEqual([true, ["slow"]]);
  });

  test("writing on regardless loses the connection when the limit is reached", async () => {
    const { operations, stops, connect, settled, server } = start({ writableBytes: 1000, bufferedBytes: 10_000 });
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1));
    await settled();
    peer.pause();
    let written = 0;
    while (!operations[0]?.finished) {
      operations[0]?.partial("x".repeat(1000));
      written += 1;
    }
    expect(written).toBeLessThan(13);
    expect(stops).toEqual([{ kind: "connection-lost" }]);
    await settled();
    expect(server.connections).toBe(0);
  });

  test("one that cannot be taken is refused by itself", async () => {
    const refused: unknown[] = [];
    const { connect, settled, operations } = start(
      { operationsPerSession: 4 },
      {
        refused: (operation, cause) => refused.push([operation.id, cause]),
      },
    );
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), submit(id, 2), submit(id, 3), submit(id, 4), submit(id, 5));
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 105n, dropReasonCode: 4 });
    peer.send(submit(id, 6, { operationId: 101n }));
    expect(await peer.expect("RESULT_DROP_REASON")).toMatchObject({ frameId: 6, metadata: { dropReasonCode: 5 } });
    // The frame id of a live operation: an answer would end that one.
    peer.send(submit(id, 1, { operationId: 777n }));
    await settled();
    expect(peer.waiting).toEqual([]);
    expect(refused).toEqual([
      [105n, "too-many-operations"],
      [101n, "duplicate-operation"],
    ]);
    expect(operations).toHaveLength(4);
  });

  test("a submit with wrong metadata is answered on its operation, and the session goes on", async () => {
    const { connect, operations, settled } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1, { submitMode: 1, objectRefMask: 0 }));
    await settled();
    operations.length = 0;
    // Tensor fields without a tensor.
    const bad = submit(id, 2);
    peer.send({ ...bad, metadata: { ...bad.metadata, srcWidth: 640 } } as AnyPacketDraft);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 102n, dropReasonCode: 5 });
    peer.send(submit(id, 3));
    await settled();
    expect(operations.map((operation) => operation.id)).toEqual([103n]);
  });

  test("a body that is not laid out reaches the application with what is wrong", async () => {
    const { connect, operations, settled } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send({
      ...submit(id, 1),
      body: new TextEncoder().encode('{"schema_version":"x","and":"it is long enough"}'),
    } as AnyPacketDraft);
    await settled();
    expect([operations[0]?.payloads, operations[0]?.bodyError?.name]).toEqual([undefined, "NnrpWireError"]);
  });

  test("an application that throws in what it hears ends nothing but its operation", async () => {
    const failures: unknown[] = [];
    const bug = () => {
      throw new Error("a bug");
    };
    const { connect, settled } = start(
      {},
      {
        operation: () => ({ stop: bug, priority: bug }),
        opened: bug,
        closed: bug,
        failed: (error) => failures.push(error),
      },
    );
    const peer = connect();
    const sessionId = await peer.open();
    const priority = { type: "PRIORITY_UPDATE", sessionId, frameId: 1, metadata: { operationId: 101n } } as const;
    peer.send(submit(sessionId, 1), priority, control("CANCEL", sessionId, 1), submit(sessionId, 2));
    await peer.expect("RESULT_DROP_REASON");
    peer.close();
    await settled();
    expect(failures).toHaveLength(5);
  });

  test("an application that throws drops its operation only", async () => {
    const failures: unknown[] = [];
    const { connect } = start(
      {},
      {
        operation() {
          throw new Error("a bug");
        },
        failed: (error) => failures.push(error),
      },
    );
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), { type: "PING", sessionId: id });
    await peer.expect("RESULT_DROP_REASON");
    await peer.expect("PONG");
    expect(failures).toEqual([new Error("a bug")]);
  });
});

describe("a session", () => {
  test("is refused by code and reason", async () => {
    const { connect } = start({ sessionsPerConnection: 2, operationsPerSession: 8 });
    const peer = connect();
    const id = await peer.open();
    const refused = async (draft: AnyPacketDraft) => {
      peer.send(draft);
      const { sessionId, metadata, body } = await peer.expect("SESSION_OPEN_ACK");
      expect([sessionId, metadata.sessionId, metadata.sessionStatus]).toEqual([0, 0, 1]);
      expect(new TextDecoder().decode(body)).not.toBe("");
      return metadata.sessionErrorCode;
    };
    expect(await refused(sessionOpen({ profileId: 1 }))).toBe(SessionErrorCode.profileUnsupported);
    expect(await refused(sessionOpen({ schemaVersion: 4 }))).toBe(SessionErrorCode.schemaUnsupported);
    expect(await refused(sessionOpen({ maxInFlightOperations: 9 }))).toBe(SessionErrorCode.sessionLimitReached);
    expect(await refused(sessionOpen({ requestedSessionId: id }))).toBe(SessionErrorCode.sessionLimitReached);
    expect(await refused({ ...sessionOpen({ authBytes: 3 }), body: new Uint8Array(3) } as AnyPacketDraft)).toBe(
      SessionErrorCode.authFailed,
    );
    expect(await refused({ ...sessionOpen({ resumeTokenBytes: 3 }), body: new Uint8Array(3) } as AnyPacketDraft)).toBe(
      SessionErrorCode.resumeRejected,
    );
    await peer.openSession({ profileId: 0, schemaId: 0, schemaVersion: 0 });
    expect(await refused(sessionOpen())).toBe(SessionErrorCode.sessionLimitReached);
  });

  test("has to wait for a decision; its id is never used again on the connection", async () => {
    let decide: (accept: boolean) => void = () => {};
    const { connect } = start(
      {},
      {
        open: () =>
          new Promise((resolve) => {
            decide = (accept) =>
              resolve(accept ? { accept } : { accept, code: SessionErrorCode.authFailed, reason: "who are you" });
          }),
      },
    );
    const peer = connect();
    await peer.hello();
    const seen: number[] = [];
    for (const accept of [true, false, true]) {
      peer.send(sessionOpen());
      await new Promise(setImmediate);
      decide(accept);
      const ack = await peer.expect("SESSION_OPEN_ACK");
      seen.push(ack.sessionId);
      if (ack.sessionId === 0) continue;
      peer.send({ type: "SESSION_CLOSE", sessionId: ack.sessionId });
      await peer.expect("SESSION_CLOSE_ACK");
    }
    expect(seen).toEqual([1, 0, 2]);
  });

  test("closes at once, or drains", async () => {
    const { connect, clock, operations, stops, settled } = start();
    const peer = connect();
    const first = await peer.open();
    peer.send(submit(first, 1), { type: "SESSION_CLOSE", sessionId: first, metadata: { lastOperationId: 101n } });
    await peer.expect("RESULT_DROP_REASON");
    expect((await peer.expect("SESSION_CLOSE_ACK")).metadata).toMatchObject({ closeStatus: 2, lastOperationId: 101n });
    expect(stops).toEqual([{ kind: "session-closed" }]);

    const second = await peer.openSession();
    const close = (sessionId: number) =>
      ({ type: "SESSION_CLOSE", sessionId, metadata: { drainTimeoutMs: 100 } }) as const;
    peer.send(submit(second, 1), close(second));
    await settled();
    expect(peer.waiting).toEqual([]);
    peer.send(submit(second, 2));
    expect((await peer.expect("RESULT_DROP_REASON")).metadata.dropReasonCode).toBe(DropReason.transportClosed);
    operations.at(-1)?.result(undefined);
    await peer.expect("RESULT_PUSH");
    await peer.expect("SESSION_CLOSE_ACK");

    const third = await peer.openSession();
    peer.send(submit(third, 1), close(third));
    await settled();
    clock.advance(100);
    await peer.expect("RESULT_DROP_REASON");
    await peer.expect("SESSION_CLOSE_ACK");
  });

  test("late packets of a closed session are nothing", async () => {
    const { connect, settled } = start();
    const peer = connect();
    const id = await peer.open();
    const asked = await peer.openSession({ requestedSessionId: 4000 });
    peer.send({ type: "SESSION_CLOSE", sessionId: id }, { type: "SESSION_CLOSE", sessionId: asked });
    await peer.expect("SESSION_CLOSE_ACK");
    await peer.expect("SESSION_CLOSE_ACK");
    peer.send(submit(id, 1), control("CANCEL", asked, 1), { type: "SESSION_CLOSE", sessionId: id }, { type: "PING" });
    await peer.expect("PONG");
    await settled();
    expect(peer.waiting).toEqual([]);
  });

  test("that lost its connection comes back once, by its token, with what the application left in it", async () => {
    const resumed: unknown[] = [];
    const { connect, clock } = start(
      {},
      {
        open: (request) => {
          resumed.push(request.resumed?.data);
          return { accept: true };
        },
        opened: (session) => {
          session.data ??= "mine";
        },
      },
    );
    const flags = { sessionFlags: SessionFlags.allowResume };
    const openWith = async (requestedSessionId: number, token: Uint8Array) => {
      const peer = connect();
      await peer.hello();
      const open = sessionOpen({ ...flags, requestedSessionId, resumeTokenBytes: token.byteLength });
      peer.send({ ...open, body: token } as AnyPacketDraft);
      return { peer, ack: await peer.expect("SESSION_OPEN_ACK") };
    };
    const lost = connect();
    await lost.hello();
    lost.send(sessionOpen(flags));
    const first = await lost.expect("SESSION_OPEN_ACK");
    expect(first.metadata).toMatchObject({ resumeTokenBytes: 24, sessionFlagsAck: 1, resumeWindowMs: 120_000 });
    expect((await openWith(first.sessionId, first.body)).ack.metadata.sessionErrorCode).toBe(0x10006);
    lost.close();
    await lost.ended();
    const again = await openWith(first.sessionId, first.body);
    expect([again.ack.metadata.sessionStatus, again.ack.sessionId]).toEqual([3, first.sessionId]);
    expect(resumed).toEqual([undefined, "mine"]);
    expect((await openWith(first.sessionId, first.body)).ack.metadata.sessionErrorCode).toBe(0x10006);
    again.peer.close();
    await again.peer.ended();
    clock.advance(120_000);
    expect((await openWith(first.sessionId, again.ack.body)).ack.metadata.sessionErrorCode).toBe(0x10006);
  });
});

describe("a connection", () => {
  test("ends without a hello, when nothing happens, and not while an operation runs", async () => {
    const { connect, clock, operations, settled } = start();
    const silent = connect();
    const idle = connect();
    const busy = connect();
    await idle.open();
    busy.send(submit(await busy.open(), 1));
    await settled();
    clock.advance(11_000);
    await silent.ended();
    clock.advance(600_000);
    await idle.ended();
    operations[0]?.result(undefined);
    await busy.expect("RESULT_PUSH");
  });

  test("too many at once are not served", async () => {
    const { connect } = start({ connections: 1 });
    const first = connect();
    await first.hello();
    await connect().ended();
    first.send({ type: "PING" });
    await first.expect("PONG");
  });

  test("probes are answered before and after the hello", async () => {
    const { connect } = start({ probesPerConnection: 3 });
    const peer = connect();
    const probe = { type: "TRANSPORT_PROBE", metadata: { probeId: 7 }, body: new Uint8Array(32 * 1024) } as const;
    peer.send(probe, probe);
    expect((await peer.expect("TRANSPORT_PROBE_ACK")).metadata.probeId).toBe(7);
    await peer.expect("TRANSPORT_PROBE_ACK");
    await peer.hello();
    peer.send(probe);
    await peer.expect("TRANSPORT_PROBE_ACK");
    peer.send(probe);
    await peer.ended();
  });

  test("bad packets of a session are counted, and too many end the connection", async () => {
    const { connect, settled, logged } = start({ protocolErrorsPerSession: 3 });
    const peer = connect();
    const id = await peer.open();
    const unknown = control("CANCEL", id, 9);
    peer.send(unknown, unknown, unknown);
    await settled();
    expect(logged.filter((detail) => detail.includes("unknown operation"))).toHaveLength(3);
    peer.send(unknown);
    await peer.ended();
  });

  test("that ends stops its operations", async () => {
    const { connect, stops, settled, server } = start();
    const peer = connect();
    peer.send(submit(await peer.open(), 1));
    await settled();
    expect([server.connections, server.sessions, server.operations]).toEqual([1, 1, 1]);
    peer.close();
    await settled();
    expect(stops).toEqual([{ kind: "connection-lost" }]);
    expect([server.connections, server.sessions, server.operations]).toEqual([0, 0, 0]);
  });

  test("an authentication block is taken only by agreement", async () => {
    const blocks: unknown[] = [];
    const server = createServer(
      {
        open: ({ connection }) => {
          blocks.push(connection.authBlock);
          return { accept: true };
        },
        operation: () => undefined,
      },
      { acceptAuthBlocks: true },
    );
    const [ours, theirs] = createCarrierPair();
    server.accept(ours);
    const peer = new RawPeer(theirs);
    peer.send({ ...hello, metadata: { ...hello.metadata, authBytes: 2 }, body: new Uint8Array([1, 2]) });
    await peer.expect("SERVER_HELLO_ACK");
    await peer.openSession();
    expect(blocks).toEqual([new Uint8Array([1, 2])]);
  });
});

describe("a server", () => {
  test("that closes drains, drops the rest, and ends every carrier", async () => {
    const { server, connect, clock, operations, settled, stops } = start();
    const peer = connect();
    const id = await peer.open();
    peer.send(submit(id, 1), submit(id, 2));
    await settled();
    const closed = server.close({ drainMs: 500 });
    peer.send(submit(id, 3));
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 103n, dropReasonCode: 8 });
    operations[0]?.result(undefined);
    await peer.expect("RESULT_PUSH");
    clock.advance(500);
    expect((await peer.expect("RESULT_DROP_REASON")).metadata).toMatchObject({ operationId: 102n, dropReasonCode: 8 });
    await peer.ended();
    await closed;
    expect(stops).toEqual([{ kind: "server-closing" }]);
    expect(server.connections).toBe(0);
  });

  test("refuses a limit that is none", () => {
    expect(() => createServer({ operation: () => undefined }, { limits: { idleMs: Number.NaN } })).toThrow("idleMs");
  });
});
