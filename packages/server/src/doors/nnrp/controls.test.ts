import { ManualClock } from "@plenum/core/testing";
import {
  type ClientSession,
  DropReason,
  type NnrpError,
  ReasonCode,
  type SessionOptions,
  StageCode,
  type SubmitRequest,
} from "@plenum/nnrp";
import { describe, expect, it } from "vitest";
import { type Bench, chat, lastResponse, type Outcome, read, type SetUpOptions, setUp } from "./testing/set-up.ts";

/** A door whose backend says one word and goes on until it is stopped, and a session with it. */
async function endless(
  options: SetUpOptions = {},
  session: SessionOptions = {},
): Promise<Bench & { session1: ClientSession }> {
  const bench = setUp(options);
  bench.backend.answer = async function* (_request, signal) {
    yield [
      { type: "accepted", inputTokens: 3 },
      { type: "text", candidate: 0, delta: "one" },
    ];
    await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  };
  return { ...bench, session1: await bench.session(session) };
}

/** Submits, and resolves with the rest of the answer once the first word has come. */
async function begun(session: ClientSession, request: Partial<SubmitRequest> = {}, nnrp?: object) {
  const operation = session.submit({ body: chat({}, nnrp), ...request });
  let hear = (): void => {};
  const heard = new Promise<void>((resolve) => {
    hear = resolve;
  });
  async function* told() {
    for await (const event of operation) {
      if (event.type === "partial") hear();
      yield event;
    }
  }
  const outcome: Promise<Outcome> = read(told());
  await Promise.race([heard, outcome]);
  return { operation, outcome };
}

const dropped = (reason: number) => ({ end: expect.objectContaining({ type: "dropped", reason }) });

/** Lets what was caused end: everything here is in memory. */
async function settle(bench: Bench): Promise<void> {
  while (bench.core.responses.active > 0) await new Promise((resolve) => setImmediate(resolve));
}

describe("a client's cancel", () => {
  it.each(["cancel", "abort"] as const)("%s reaches the backend, and the operation is dropped", async (how) => {
    const bench = await endless();
    const { operation, outcome } = await begun(bench.session1);
    operation[how](ReasonCode.userCancelled);
    expect(await outcome).toMatchObject(dropped(DropReason.peerCancelled));
    await settle(bench);
    expect(bench.backend.aborted).toBe(1);
    expect(await lastResponse(bench.core)).toMatchObject({ door: "nnrp", status: "cancelled" });
    expect(bench.problems).toEqual([]);
  });

  it("that comes with the submit: nothing is begun", async () => {
    const bench = await endless();
    const operation = bench.session1.submit({ body: chat() });
    operation.cancel();
    expect(await read(operation)).toMatchObject(dropped(DropReason.peerCancelled));
    expect(bench.backend.requests).toEqual([]);
    expect(bench.core.responses.active).toBe(0);
  });

  it("of an answer in one piece, and of one that waits", async () => {
    const bench = await endless({ parallel: 1 });
    const running = bench.session1.submit({ body: chat({ stream: false }) });
    const waiting = bench.session1.submit({ body: chat({ stream: false }) });
    while (bench.core.scheduler.queued === 0) await new Promise((resolve) => setImmediate(resolve));
    waiting.cancel();
    expect(await read(waiting)).toMatchObject(dropped(DropReason.peerCancelled));
    running.cancel();
    expect(await read(running)).toMatchObject(dropped(DropReason.peerCancelled));
    await settle(bench);
    expect(bench.backend.requests).toHaveLength(1);
  });

  it("leaves the session's other operations alone", async () => {
    const bench = await endless();
    const first = await begun(bench.session1);
    const second = await begun(bench.session1);
    first.operation.cancel();
    await first.outcome;
    expect(bench.backend.running).toBe(1);
    second.operation.cancel();
    await second.outcome;
  });
});

describe("deadlines", () => {
  it("DEADLINE before the submit ends the response, and the operation is dropped", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const deadline = { unixMs: clock.now() + 1000 };
    const { outcome } = await begun(bench.session1, { deadline });
    expect((await lastResponse(bench.core)).deadlineMs).toBe(deadline.unixMs);
    clock.advance(1000);
    expect(await outcome).toMatchObject(dropped(DropReason.deadlineExpired));
    expect(bench.backend.aborted + bench.backend.running).toBe(1);
  });

  it("DEADLINE and EXPIRE_AT while it runs do the same", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    for (const how of ["setDeadline", "setExpireAt"] as const) {
      const { operation, outcome } = await begun(bench.session1);
      operation[how]({ unixMs: clock.now() + 500, discardStale: true });
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(500);
      expect(await outcome).toMatchObject(dropped(DropReason.deadlineExpired));
      await settle(bench);
    }
  });

  it("nnrp.timeout_ms ends in request_timeout", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const { outcome } = await begun(bench.session1, {}, { timeout_ms: 1000 });
    clock.advance(1000);
    const { terminal, end } = await outcome;
    expect(terminal).toMatchObject({ error: { type: "timeout_error", code: "request_timeout" } });
    expect(end).toMatchObject({ type: "result", status: 504 });
  });

  it("the nearer of both counts", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const far = { deadline: { unixMs: clock.now() + 5000 } };
    const { outcome } = await begun(bench.session1, far, { timeout_ms: 1000 });
    clock.advance(1000);
    expect(await outcome).toMatchObject({ terminal: { error: { code: "request_timeout" } } });
  });
});

describe("priority", () => {
  it.each([
    ["of the session", { priority: "interactive" }, {}, 4],
    ["of the session", { priority: "background" }, {}, -4],
    ["of the operation", {}, { priority: { priorityClass: 0, delta: 2 } }, 6],
    ["beyond the limit", {}, { priority: { priorityClass: 2, delta: -99 } }, -8],
    ["of another class", {}, { priority: { priorityClass: 10 } }, -8],
  ] as const)("%s: %j %j", async (_name, session, request, priority) => {
    const bench = await endless({}, session);
    const { operation, outcome } = await begun(bench.session1, request);
    expect((await lastResponse(bench.core)).priority).toBe(priority);
    operation.cancel();
    await outcome;
  });
});

it("PROGRESS tells a request that waits its place, in a body as LMSP has it", async () => {
  const bench = await endless({ parallel: 1 });
  const running = await begun(bench.session1);
  const waiting = bench.session1.submit({ body: chat() });
  for await (const event of waiting) {
    if (event.type !== "progress") continue;
    const body = JSON.parse(new TextDecoder().decode(event.body));
    expect([event.stage, body]).toEqual([
      StageCode.queued,
      expect.objectContaining({ type: "response.progress", kind: "queued", position: 1 }),
    ]);
    break;
  }
  running.operation.cancel();
  await running.outcome;
});

describe("a trace", () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const context = { traceId: 0xa3ce929d0e0e4736n, spanId: 0xf067aa0ba902b7n, sampled: true };
  const lowerHalf = "00-0000000000000000a3ce929d0e0e4736-00f067aa0ba902b7-01";

  it.each([
    ["of the request", { traceparent, tracestate: "a=1" }, {}, { traceparent, tracestate: "a=1" }],
    ["of TRACE_CONTEXT", {}, { traceContext: context }, { traceparent: lowerHalf }],
    ["of the request before that", { traceparent }, { traceContext: context }, { traceparent }],
    ["that is none", { traceparent: "x", tracestate: "a=1" }, {}, undefined],
  ])("%s goes to the backend beside the body, and comes back in the diagnostics", async (_of, nnrp, submit, trace) => {
    const asked: object[] = [];
    const bench = await endless({ door: { onRequest: (request) => asked.push(request) } });
    const { operation, outcome } = await begun(bench.session1, submit, { ...nnrp, diagnostics: true });
    operation.cancel();
    const { partials } = await outcome;
    const [request] = bench.backend.requests;
    expect(request?.trace).toEqual(trace);
    expect(JSON.stringify({ ...request, trace: undefined })).not.toContain("0f067aa");
    const { diagnostics } = partials[0] as unknown as { readonly diagnostics: object };
    const told = trace === undefined ? {} : { traceparent: trace.traceparent };
    expect(diagnostics).toMatchObject(told);
    expect("traceparent" in diagnostics).toBe(trace !== undefined);
    expect(asked).toMatchObject([{ operation: "chat.completions.create", ...told }]);
  });

  it("of the session is that of requests without one", async () => {
    const bench = await endless();
    bench.session1.sendTraceContext(context);
    const { operation, outcome } = await begun(bench.session1);
    expect(bench.backend.requests[0]?.trace).toEqual({ traceparent: lowerHalf });
    operation.cancel();
    await outcome;
  });
});

it("SUPERSEDE ends the old response and says so", async () => {
  const bench = await endless();
  const old = await begun(bench.session1);
  const { id } = await lastResponse(bench.core);
  const next = await begun(bench.session1, { supersedes: old.operation });
  expect(await old.outcome).toMatchObject(dropped(DropReason.superseded));
  const { response } = await bench.core.responses.get(id, { id: "local", scopes: new Set() });
  expect(response.problem?.code).toBe("superseded");
  next.operation.cancel();
  await next.outcome;
});

describe("what the client says later", () => {
  it("PRIORITY_UPDATE moves a response that waits", async () => {
    const bench = await endless({ parallel: 1 });
    const running = await begun(bench.session1);
    const first = bench.session1.submit({ body: chat() });
    while (bench.core.scheduler.queued < 1) await new Promise((resolve) => setImmediate(resolve));
    // Responses of one millisecond are listed in no order of their own.
    await new Promise((resolve) => setTimeout(resolve, 2));
    const second = bench.session1.submit({ body: chat() });
    while (bench.core.scheduler.queued < 2) await new Promise((resolve) => setImmediate(resolve));
    const { id } = await lastResponse(bench.core);
    second.updatePriority({ priorityClass: 0, delta: 1 });
    while ((await lastResponse(bench.core)).priority !== 5) await new Promise((resolve) => setImmediate(resolve));
    running.operation.cancel();
    while (bench.backend.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(bench.backend.requests[1]).toMatchObject({ priority: 5 });
    expect(await lastResponse(bench.core)).toMatchObject({ id, status: "in_progress" });
    first.cancel();
    second.cancel();
    await Promise.all([read(first), read(second)]);
  });

  it("DEADLINE moves the end, sooner and later, and its passing is a passed deadline, not a cancel", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const { operation, outcome } = await begun(bench.session1, { deadline: { unixMs: clock.now() + 1_000 } });
    const { id } = await lastResponse(bench.core);
    for (const unixMs of [clock.now() + 900_000, clock.now() + 60_000]) {
      operation.setDeadline({ unixMs });
      while ((await lastResponse(bench.core)).deadlineMs !== unixMs) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    clock.advance(59_000);
    expect(bench.backend.running).toBe(1);
    clock.advance(1_000);
    expect(await outcome).toMatchObject(dropped(DropReason.deadlineExpired));
    await settle(bench);
    expect(await lastResponse(bench.core)).toMatchObject({
      id,
      status: "failed",
      problem: { code: "deadline-exceeded" },
    });
  });

  it("a DEADLINE that has passed ends it at once as such", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const { operation, outcome } = await begun(bench.session1);
    operation.setDeadline({ unixMs: clock.now() - 1 });
    expect(await outcome).toMatchObject(dropped(DropReason.deadlineExpired));
    await settle(bench);
    expect(await lastResponse(bench.core)).toMatchObject({ problem: { code: "deadline-exceeded" } });
  });

  it("a later DEADLINE beside nnrp.timeout_ms: the nearer counts still", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const { operation, outcome } = await begun(bench.session1, {}, { timeout_ms: 2_000 });
    const { deadlineMs } = await lastResponse(bench.core);
    operation.setDeadline({ unixMs: clock.now() + 2 ** 60 });
    operation.updatePriority({ priorityClass: 2 });
    while ((await lastResponse(bench.core)).priority !== -4) await new Promise((resolve) => setImmediate(resolve));
    expect((await lastResponse(bench.core)).deadlineMs).toBe(deadlineMs);
    clock.advance(2_000);
    expect(await outcome).toMatchObject({ terminal: { error: { code: "request_timeout" } } });
  });

  it("BUDGET_UPDATE ends a response that has had so many tokens", async () => {
    const bench = await endless();
    const { operation, outcome } = await begun(bench.session1);
    operation.updateBudget({ tokens: 1 });
    expect(await outcome).toMatchObject({
      terminal: { type: "response.completed", body: { choices: [{ finish_reason: "length" }] } },
    });
    await settle(bench);
    expect(bench.backend.aborted).toBe(1);
    expect(await lastResponse(bench.core)).toMatchObject({ status: "incomplete", incompleteReason: "max_tokens" });
  });

  it("controls of an operation that has ended are nothing", async () => {
    const bench = await endless();
    const { operation, outcome } = await begun(bench.session1);
    operation.cancel();
    operation.updatePriority({ priorityClass: 0 });
    operation.setDeadline({ unixMs: 1 });
    await outcome;
    await settle(bench);
    expect(bench.problems).toEqual([]);
    expect(bench.faults).toEqual([]);
  });
});

it("BUDGET_UPDATE behind the submit bounds the output tokens", async () => {
  const bench = await endless();
  const operation = bench.session1.submit({ body: chat({ max_tokens: 100 }) });
  operation.updateBudget({ tokens: 5 });
  while (bench.backend.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(bench.backend.requests[0]?.output.maxTokens).toBe(5);
  operation.cancel();
});

describe("the end of a connection or session", () => {
  it.each(["connection", "session"])("%s: the response is cancelled", async (what) => {
    const bench = await endless();
    const { outcome } = await begun(bench.session1);
    if (what === "connection") bench.session1.connection.destroy();
    else await bench.session1.close({ policy: "abort" });
    await outcome;
    await settle(bench);
    expect(await lastResponse(bench.core)).toMatchObject({
      status: "cancelled",
      problem: { details: { reason: "disconnected" } },
    });
  });

  it("on_disconnect continue: it goes on, and its events come again to its owner", async () => {
    const bench = await endless();
    let finish = (): void => {};
    bench.backend.answer = async function* () {
      yield [
        { type: "accepted", inputTokens: 3 },
        { type: "text", candidate: 0, delta: "one" },
      ];
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      yield [
        { type: "text", candidate: 0, delta: " two" },
        { type: "finish", candidate: 0, finishReason: "stop" },
        { type: "usage", usage: { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1, reasoningTokens: 0 } },
      ];
    };
    const { outcome } = await begun(bench.session1, {}, { on_disconnect: "continue" });
    const { id } = await lastResponse(bench.core);
    // The first partial names the response; the word may be on its way.
    while (bench.backend.running === 0) await new Promise((resolve) => setImmediate(resolve));
    bench.session1.connection.destroy();
    const { partials } = await outcome;
    expect(partials[0]).toMatchObject({ type: "response.diagnostics", diagnostics: { response_id: id } });

    const session = await bench.session();
    const again = session.submit({
      body: {
        event: JSON.stringify({
          schema_version: "openai-compatible/1",
          operation: "responses.events",
          body: { id, after: 1 },
        }),
      },
    });
    const numbers: bigint[] = [];
    const told = (async function* () {
      for await (const event of again) {
        if (event.type === "partial") {
          numbers.push(event.deltaSequence);
          finish();
        }
        yield event;
      }
    })();
    const { partials: rest, terminal } = await read(told);
    expect(rest.map(({ type }) => type)).toEqual([
      "response.output_text.delta",
      "response.output_text.delta",
      "response.usage",
      "response.diagnostics",
    ]);
    expect(numbers).toEqual([2n, 3n, 4n, 5n]);
    expect(terminal).toMatchObject({
      body: { object: "chat.completion", choices: [{ message: { content: "one two" } }] },
    });
    expect(bench.faults).toEqual([]);
  });

  it("on_disconnect continue: nobody comes back, and it is abandoned", async () => {
    const clock = new ManualClock();
    const bench = await endless({ clock });
    const { outcome } = await begun(bench.session1, {}, { on_disconnect: "continue" });
    bench.session1.connection.destroy();
    await outcome;
    while (bench.door.server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(bench.core.responses.active).toBe(1);
    clock.advance(60_000);
    await settle(bench);
    expect((await lastResponse(bench.core)).problem?.details.reason).toBe("abandoned");
  });

  it("the service stops: what still runs is dropped as the service that goes", async () => {
    const bench = await endless();
    const { outcome } = await begun(bench.session1);
    await Promise.all([bench.core.close(0), bench.door.server.close()]);
    expect(await outcome).toMatchObject(dropped(DropReason.transportClosed));
    expect(await lastResponse(bench.core)).toMatchObject({ status: "failed", problem: { code: "interrupted" } });
    const closed: NnrpError | undefined = await bench.session1.connection.closed;
    expect(closed?.code).toBe("connection-closed");
  });
});

it("a cancel from elsewhere ends in response.cancelled", async () => {
  const bench = await endless();
  const { outcome } = await begun(bench.session1);
  const { id } = await lastResponse(bench.core);
  await bench.core.responses.cancel(id, { id: "local", scopes: new Set() });
  expect(await outcome).toMatchObject({
    terminal: { type: "response.cancelled", reason: "peer_cancelled" },
    end: { status: 499 },
  });
});

it("a client that gives no credit stops its own place, and nothing else", async () => {
  const bench = setUp();
  const texts = Array.from({ length: 50 }, (_, index) => `${index} `);
  bench.backend.answer = function* () {
    yield [{ type: "accepted", inputTokens: 1 }];
    for (const delta of texts) yield [{ type: "text", candidate: 0, delta }];
    yield [
      { type: "finish", candidate: 0, finishReason: "stop" },
      { type: "usage", usage: { inputTokens: 1, outputTokens: 50, cachedInputTokens: 0, reasoningTokens: 0 } },
    ];
  };
  const session = await bench.session();
  const operation = session.submit({ body: chat({}, { diagnostics: true }), creditWindow: 3 });
  const seen: number[] = [];
  // The response ends whoever reads.
  while (bench.core.responses.active > 0 || bench.backend.requests.length === 0) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { partials, terminal } = await read(operation);
  for (const event of partials) if (event.type === "response.output_text.delta") seen.push(Number(event["delta"]));
  expect(seen).toEqual(texts.map(Number));
  expect(terminal).toMatchObject({ type: "response.completed" });
  expect(partials.at(-1)).toMatchObject({ diagnostics: { flow_pressure: "soft" } });
});
