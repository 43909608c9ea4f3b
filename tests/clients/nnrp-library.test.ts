import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ClientSession,
  createServer,
  DropReason,
  type NnrpServer,
  type OperationEvent,
  type ServerOperation,
  SessionErrorCode,
  type StopCause,
  type SubmitRequest,
} from "@plenum/nnrp";
import { connect, type Listener, listen } from "@plenum/nnrp/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noPeer, type PeerServer, runPeerClient, startPeerServer } from "./nnrp-peer.ts";

const carriers = ["tcp", "websocket", "ipc"] as const;
const title = (what: string) => `${what}${noPeer === undefined ? "" : `, skipped: ${noPeer}`}`;
const folder = mkdtempSync(join(tmpdir(), "nnrp-peer-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The peer's client against a server of the library, which knows nothing of the profile but answers in its words. */
describe.skipIf(noPeer !== undefined)(title("the NNRP library's server and nnrp-py's client"), () => {
  const stops: StopCause[] = [];
  let server: NnrpServer;
  const listeners = new Map<string, Listener>();
  const at = (carrier: string) => listeners.get(carrier)?.endpoint ?? "";

  beforeAll(async () => {
    server = createServer({
      operation: (operation) => answer(operation, stops),
      open: (request) =>
        request.defaultDeadlineMs === 4321
          ? { accept: false, code: SessionErrorCode.authFailed, reason: "not today" }
          : { accept: true },
    });
    for (const [carrier, endpoint] of Object.entries({
      tcp: "tcp://127.0.0.1:0",
      websocket: "ws://127.0.0.1:0/nnrp",
      ipc: `unix://${folder}/server.sock`,
    })) {
      listeners.set(carrier, await listen(server, endpoint));
    }
  });
  afterAll(async () => {
    await Promise.all([...listeners.values()].map((listener) => listener.close()));
    await server?.close();
  });

  describe.each(carriers)("over %s", (carrier) => {
    it("streams", async () => {
      const { code, outcomes } = await runPeerClient(at(carrier), ["chat-stream"]);
      expect([code, outcomes]).toEqual([0, ["response.completed"]]);
    });

    it.each(["cancel", "abort", "frame"])(
      "hears %s in the middle of a stream, and ends the operation",
      async (kind) => {
        stops.length = 0;
        const words = ["--cancel-after", "2", "--cancel-kind", kind];
        const { code } = await runPeerClient(at(carrier), ["chat-slow"], words);
        expect(code).toBe(0);
        expect(stops.map((cause) => cause.kind)).toEqual([kind === "frame" ? "frame-cancel" : kind]);
      },
    );

    it("runs several requests at once in one session", async () => {
      const requests = ["chat", "chat-stream", "models-list", "embeddings", "responses"];
      const { code, outcomes } = await runPeerClient(at(carrier), requests, ["--concurrent"]);
      expect([code, outcomes]).toEqual([0, Array(5).fill("response.completed")]);
    });
  });

  it.each([
    ["--deadline-ms", []],
    ["--expire-ms", ["--schedule-flags", "1"]],
    ["--expire-ms", ["--schedule-flags", "3", "--priority", "0"]],
  ])("%s %s stops a request and says so", async (what, further) => {
    stops.length = 0;
    const { code, outcomes } = await runPeerClient(at("tcp"), ["chat-slow"], [what, "150", ...further]);
    expect([code, outcomes]).toEqual([0, ["drop"]]);
    expect(stops.map((cause) => cause.kind)).toEqual([what === "--deadline-ms" ? "deadline" : "expired"]);
  });

  it.each([
    ["another profile", ["--session-profile", "1"], SessionErrorCode.profileUnsupported],
    ["another schema", ["--session-schema", "0:0"], SessionErrorCode.schemaUnsupported],
    ["too many in flight", ["--max-in-flight", "1000"], SessionErrorCode.sessionLimitReached],
    ["the application's refusal", ["--default-deadline-ms", "4321"], SessionErrorCode.authFailed],
  ])("refuses a session for %s with a code", async (_, words, protocolCode) => {
    const { code, lines } = await runPeerClient(at("tcp"), ["chat"], words);
    expect(code).toBe(2);
    expect(lines).toContainEqual(
      expect.objectContaining({ status: expect.objectContaining({ protocol_error_code: protocolCode }) }),
    );
  });

  it("gives a session the id it asks for, and a resume token", async () => {
    const { code, lines } = await runPeerClient(at("tcp"), ["chat"], ["--session-id", "77", "--allow-resume"]);
    expect(code).toBe(0);
    expect(lines).toContainEqual(expect.objectContaining({ message: "RESULT_PUSH", session_id: 77 }));
  });
});

/**
 * Answers in events of the profile; a slow request goes on until it is stopped. Its steps are far apart: the peer's client
 * loses its session over an event that crosses its FRAME_CANCEL.
 */
function answer(operation: ServerOperation, stops: StopCause[]) {
  const text = new TextDecoder().decode(operation.payloads?.[0]?.bytes);
  const say = () => operation.partial('{"type":"response.output_text.delta","index":0,"delta":"x"}');
  const complete = () => operation.result({ event: '{"type":"response.completed","body":{}}' });
  operation.progress({ stage: 5, percent: 10 });
  if (text.includes('"stream":true')) for (let count = 0; count < 2; count += 1) say();
  if (!text.includes("slow-model")) {
    complete();
    return undefined;
  }
  const timer = setInterval(say, 250);
  return {
    stop(cause: StopCause) {
      clearInterval(timer);
      stops.push(cause);
    },
  };
}

/** The library's client against the peer's server. */
describe.skipIf(noPeer !== undefined)(title("the NNRP library's client and nnrp-py's server"), () => {
  let peer: PeerServer;
  beforeAll(async () => {
    peer = await startPeerServer(["tcp://127.0.0.1:0", "ws://127.0.0.1:0", `unix://${folder}/peer.sock`]);
  });
  afterAll(() => peer?.stop());

  const request = (operation: string, body: unknown): SubmitRequest => ({
    body: { event: JSON.stringify({ schema_version: "openai-compatible/1", operation, body }) },
  });
  const messages = [{ role: "user", content: "ping" }];
  const chat = (model: string, further: object = {}) =>
    request("chat.completions.create", { model, messages, stream: true, ...further });

  async function inSession(carrier: string, use: (session: ClientSession) => Promise<void>): Promise<void> {
    const connection = await connect(peer.endpoints[carrier] ?? "");
    try {
      const session = await connection.openSession();
      await use(session);
      await session.close();
    } finally {
      await connection.close();
    }
  }

  const read = async (events: AsyncIterable<OperationEvent>) => {
    const all: OperationEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  };
  const typesOf = (events: readonly OperationEvent[]) =>
    events.map((event) => {
      if (event.type === "partial") return JSON.parse(new TextDecoder().decode(event.body)).type;
      const payload = event.type === "result" ? event.payloads?.[0] : undefined;
      return payload === undefined ? event.type : JSON.parse(new TextDecoder().decode(payload.bytes)).type;
    });

  describe.each(carriers)("over %s", (carrier) => {
    it("reads a stream", () =>
      inSession(carrier, async (session) => {
        const types = typesOf(await read(session.submit(chat("example-model"))));
        expect(types.filter((type) => type !== "progress")).toEqual([
          "response.output_text.delta",
          "response.output_text.delta",
          "response.output_text.delta",
          "response.usage",
          "response.completed",
        ]);
      }));

    it.each(["cancel", "abort"] as const)("%ss in the middle of a stream", (how) =>
      inSession(carrier, async (session) => {
        const operation = session.submit(chat("slow-model"));
        let partials = 0;
        let end: OperationEvent | undefined;
        for await (const event of operation) {
          end = event;
          if (event.type === "partial") partials += 1;
          if (partials === 2) operation[how]();
        }
        expect(end).toMatchObject({ type: "dropped", reason: DropReason.peerCancelled });
        expect(typesOf(await read(session.submit(chat("example-model")))).at(-1)).toBe("response.completed");
      }),
    );

    it("submits more at once than the server grants: the rest waits", () =>
      inSession(carrier, async (session) => {
        const operations = Array.from({ length: 9 }, () => session.submit(request("models.list", {})));
        expect(session.inFlight).toBe(session.maxInFlight);
        const ends = await Promise.all(operations.map(read));
        expect(ends.map((events) => typesOf(events).at(-1))).toEqual(Array(9).fill("response.completed"));
      }));
  });

  it("reads tools, embeddings, responses, errors and drops", () =>
    inSession("tcp", async (session) => {
      const last = async (submit: SubmitRequest) => typesOf(await read(session.submit(submit))).at(-1);
      expect(await last(request("embeddings.create", { model: "example-embedder", input: "a" }))).toBe(
        "response.completed",
      );
      expect(await last(request("responses.create", { model: "example-model", input: "a", stream: true }))).toBe(
        "response.completed",
      );
      expect(await last(chat("missing-model"))).toBe("response.error");
      expect(await last(chat("dropping-model"))).toBe("dropped");
      const tools = [{ type: "function", function: { name: "lookup", parameters: {} } }];
      expect(typesOf(await read(session.submit(chat("example-model", { tools }))))).toContain(
        "response.tool_call.completed",
      );
    }));

  it("sends every control of a running operation", () =>
    inSession("tcp", async (session) => {
      const now = Date.now();
      session.sendTraceContext({ traceId: 5n, spanId: 6n, sampled: true });
      const operation = session.submit({
        ...chat("slow-model"),
        deadline: { unixMs: now + 60_000 },
        expireAt: { unixMs: now + 60_000 },
        priority: { priorityClass: 0 },
        traceContext: { traceId: 7n, spanId: 8n },
      });
      let partials = 0;
      for await (const event of operation) {
        if (event.type !== "partial") continue;
        partials += 1;
        if (partials === 1) {
          operation.updateBudget({ tokens: 5 });
          operation.sendCredit(4);
          operation.sendBackpressure({ level: 1 });
        }
        if (partials === 3) operation.cancel();
      }
      const received = new Set(peer.lines.filter(({ event }) => event === "received").map(({ message }) => message));
      for (const message of ["TRACE_CONTEXT", "DEADLINE", "EXPIRE_AT", "PRIORITY_UPDATE", "BUDGET_UPDATE", "CANCEL"]) {
        expect(received).toContain(message);
      }
    }));

  it("several sessions run beside each other on one connection", async () => {
    const connection = await connect(peer.endpoints["tcp"] ?? "");
    const sessions = [await connection.openSession(), await connection.openSession({ priority: "background" })];
    const ends = await Promise.all(sessions.map((session) => read(session.submit(chat("example-model")))));
    expect(ends.map((events) => typesOf(events).at(-1))).toEqual(["response.completed", "response.completed"]);
    await connection.close();
  });

  it("gets a resume ticket, and is told when the session is gone", async () => {
    const lost = await connect(peer.endpoints["tcp"] ?? "");
    const { resumeTicket } = await lost.openSession({ allowResume: true });
    lost.destroy();
    expect(resumeTicket).toMatchObject({ windowMs: 120_000 });
    if (resumeTicket === undefined) return;
    // The peer's program closes what it loses, so that nothing is left to resume.
    const again = await connect(peer.endpoints["tcp"] ?? "");
    await expect(again.openSession({ resume: resumeTicket })).rejects.toMatchObject({
      nnrpCode: SessionErrorCode.resumeRejected,
    });
    expect((await again.openSession()).resumed).toBe(false);
    await again.close();
  });

  it("tells a refused session by code and reason", async () => {
    const refusing = await startPeerServer(["tcp://127.0.0.1:0"], ["--reject-session", "0x10001"]);
    try {
      const connection = await connect(refusing.endpoints["tcp"] ?? "");
      await expect(connection.openSession()).rejects.toMatchObject({
        code: "session-rejected",
        nnrpCode: SessionErrorCode.authFailed,
        message: expect.stringContaining("refused by the command line"),
      });
      await connection.close();
    } finally {
      await refusing.stop();
    }
  });

  it("chooses among several routes by probing", async () => {
    const { tcp = "", websocket = "", ipc = "" } = peer.endpoints;
    const connection = await connect("nnrp://127.0.0.1", { routes: [websocket, tcp, ipc] });
    expect(["tcp", "ipc", "websocket"]).toContain(connection.carrier.kind);
    await connection.close();
    const forced = await connect("nnrp://127.0.0.1", { routes: [websocket, tcp, ipc], policy: "force-websocket" });
    expect(forced.carrier.kind).toBe("websocket");
    await forced.close();
  });
});
