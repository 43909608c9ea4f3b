import { type ClientSession, DropReason, ReasonCode, SessionPriorityClass } from "@plenum/nnrp";
import { afterEach, describe, expect, it } from "vitest";
import { createCapabilityDocument } from "../capabilities.ts";
import { profileError } from "../errors.ts";
import type { ProfileEvent } from "../events/event.ts";
import { exchange, exchanges, recipes } from "../testing/fixtures.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { replay, ScriptedService, type ServiceOptions } from "../testing/scripted-service.ts";
import type { ProfileCall } from "./call.ts";
import { createProfileClient, type ProfileClient, type ProfileClientOptions } from "./client.ts";
import { ProfileRequestError } from "./request-error.ts";

const services: ScriptedService[] = [];

afterEach(async () => {
  for (const service of services.splice(0)) await service.close();
});

interface SetUp {
  readonly service: ScriptedService;
  readonly session: ClientSession;
  readonly client: ProfileClient;
}

async function setUp(options: ProfileClientOptions & { readonly limitsOf?: ServiceOptions } = {}): Promise<SetUp> {
  const service = new ScriptedService(options.limitsOf);
  services.push(service);
  const session = await (await service.connect()).openSession();
  return { service, session, client: createProfileClient(session, options) };
}

async function all(call: ProfileCall): Promise<ProfileEvent[]> {
  const events: ProfileEvent[] = [];
  for await (const event of call) events.push(event);
  return events;
}

async function failureOf(promise: Promise<unknown>): Promise<ProfileRequestError> {
  const error: unknown = await promise.then(
    () => new Error("did not fail"),
    (reason) => reason,
  );
  if (error instanceof ProfileRequestError) return error;
  throw error;
}

/** Lets everything else go on. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const chat = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
};

describe("recorded exchanges", () => {
  // A request that nobody would send stops at the scripted service before it is replayed.
  const sent = exchanges.filter(({ scenario }) => !["cancel", "error-body", "error-operation"].includes(scenario));

  it.each(sent.map((recorded) => [recorded.scenario, recorded] as const))("%s", async (_name, recorded) => {
    const { service, client } = await setUp();
    service.script = replay(recorded);
    const { operation, body, request_id: requestId } = JSON.parse(recorded.request);
    const call = client.call(operation, body, { requestId });
    const events = await all(call);
    const texts = recorded.steps.flatMap((step) =>
      "partial" in step ? [step.partial] : "result" in step ? [step.result] : [],
    );
    const expected = texts.map((text) => JSON.parse(text));
    if (recorded.scenario === "drop") {
      expect(call.end).toMatchObject({ status: 503, origin: "protocol", dropReason: DropReason.backpressure });
      expect(events).toEqual([
        { type: "response.error", error: profileError("backend_overload", "the queue is full") },
      ]);
    } else {
      expect(events).toEqual(expected);
      expect(call.end?.origin).toBe("service");
    }
    expect(service.requests).toMatchObject([{ operation, body, requestId }]);
  });

  it("cancel", async () => {
    const { service, client } = await setUp();
    const recorded = exchange("cancel");
    service.script = replay(recorded);
    const call = client.call("chat.completions.create", JSON.parse(recorded.request).body);
    const events: ProfileEvent[] = [];
    for await (const event of call) {
      events.push(event);
      if (events.length === 2) call.cancel();
    }
    expect(events.at(-1)).toEqual({ type: "response.cancelled", reason: "client_cancelled" });
    expect(events).toHaveLength(3);
    expect(await call.operation?.ended).toMatchObject({ type: "dropped", reason: DropReason.peerCancelled });
    expect(service.stops).toMatchObject([{ kind: "cancel", reason: ReasonCode.userCancelled }]);
  });

  it.each(["error-body", "error-operation"])("%s: the answer is the recorded one", async (scenario) => {
    const { client } = await setUp();
    const recorded = exchange(scenario);
    const { operation, body } = JSON.parse(recorded.request);
    const [event] = await all(client.call(operation, body));
    const [step] = recorded.steps;
    if (step === undefined || !("result" in step)) throw new Error("no result");
    const { error } = JSON.parse(step.result);
    expect(event).toMatchObject({ type: "response.error", error: { type: error.type, code: error.code } });
  });

  it("refusals of the recipes reach the client", async () => {
    const { client } = await setUp();
    const recipe = recipes.find(({ id }) => id.endsWith("invalid-body"));
    if (recipe === undefined) throw new Error("no recipe");
    const events = await all(client.call(recipe.operation, recipe.request.body));
    expect(events.at(-1)).toMatchObject(recipe.expect.events[0]?.["fields"] as object);
  });
});

describe("answers", () => {
  it("whole and streamed", async () => {
    const { service, client } = await setUp();
    service.script = async ({ envelope, writer, partial, end }) => {
      if (envelope.body["stream"] === true) await partial(writer.textDelta(0, "Hello"));
      end(writer.completed(completion));
    };
    const answer = await client.chat.create({ ...chat, temperature: 0 });
    expect(answer.choices[0]?.message.content).toBe("Hello");
    const stream = client.chat.stream(chat);
    const events = [];
    for await (const event of stream) events.push(event.type);
    expect(events).toEqual(["response.output_text.delta", "response.completed"]);
    expect(await stream.final()).toEqual(completion);
    expect(service.requests.map(({ body }) => body["stream"])).toEqual([false, true]);
    expect(service.requests[0]?.body["temperature"]).toBe(0);
  });

  it("of each operation", async () => {
    const { service, client } = await setUp();
    service.script = ({ envelope, writer, end }) => {
      const isResponse = envelope.operation === "responses.create";
      end(
        writer.completed(isResponse ? { id: "r", status: "completed", output: [] } : { data: [{ id: "m", index: 0 }] }),
      );
    };
    expect((await client.responses.create({ model: "m", input: "Hi" })).status).toBe("completed");
    expect((await client.models.list()).data[0]?.id).toBe("m");
    expect((await client.embeddings.create({ model: "m", input: "Hi" })).data).toHaveLength(1);
    expect(await client.responses.stream({ model: "m", input: "Hi" }).final()).toMatchObject({ id: "r" });
    expect(service.requests.map(({ operation }) => operation)).toEqual([
      "responses.create",
      "models.list",
      "embeddings.create",
      "responses.create",
    ]);
  });

  it("put together here when the service ends without a body", async () => {
    const { service, client } = await setUp();
    service.script = async ({ operation, writer, partial }) => {
      const place = { index: 0, itemId: "tool-call-0-0", callId: "call_1" };
      await partial(writer.textDelta(0, "Hel"));
      await partial(writer.textDelta(0, "lo"));
      await partial(writer.toolCallStarted(place, "f"));
      await partial(writer.toolCallDelta("call_1", "{}"));
      await partial(writer.toolCallCompleted("call_1"));
      operation.result(undefined);
    };
    expect((await client.chat.stream(chat).final()).choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Hello",
          tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        finish_reason: "tool_calls",
      },
    ]);
  });

  it("of a wrong shape are refused", async () => {
    const { service, client } = await setUp();
    service.script = ({ writer, end }) => end(writer.completed({ data: "x" }));
    expect(await failureOf(client.models.list())).toMatchObject({ status: 502, code: "invalid_event_stream" });
  });
});

describe("errors", () => {
  it("have status, code, type, param, and what helps", async () => {
    const { service, client } = await setUp();
    service.script = ({ operation, writer, end }) => {
      operation.retryAfter({ retryAfterMs: 700 });
      end(writer.failed(profileError("scheduler_rejected", "Full.", "model"), { diagnostics: { queuePosition: 9 } }));
    };
    const error = await failureOf(client.chat.create(chat, { requestId: "req_7" }));
    expect(error).toMatchObject({ status: 503, code: "scheduler_rejected", type: "server_error", param: "model" });
    expect(error.failure).toMatchObject({
      origin: "service",
      requestId: "req_7",
      retryAfterMs: 700,
      diagnostics: { queuePosition: 9 },
    });
  });

  it.each([
    [DropReason.deadlineExpired, "request_timeout", 504],
    [DropReason.superseded, "superseded", 499],
    [DropReason.peerCancelled, "peer_cancelled", 499],
    [DropReason.capabilityMismatch, "unsupported_operation", 400],
    [DropReason.budgetExceeded, "budget_exceeded", 400],
    [DropReason.transportClosed, "connection_lost", 503],
    [DropReason.conformanceInjection, "backend_error", 502],
  ])("of a drop with reason %i: %s", async (reason, code, status) => {
    const { service, client } = await setUp();
    service.script = ({ operation }) => void operation.drop(reason);
    expect(await failureOf(client.chat.create(chat))).toMatchObject({ code, status });
  });

  it("of a lost connection", async () => {
    const { service, client } = await setUp();
    service.script = async ({ writer, partial }) => {
      await partial(writer.textDelta(0, "x"));
      service.dropConnections();
    };
    const stream = client.chat.stream(chat);
    const error = await failureOf(stream.final());
    expect(error).toMatchObject({ code: "connection_lost", status: 503, failure: { origin: "connection" } });
    expect(error.cause).toBeDefined();
    expect(await failureOf(client.models.list())).toMatchObject({ code: "connection_lost" });
  });

  it("of a body that can't be written", async () => {
    const { service, client } = await setUp();
    const body: Record<string, unknown> = { ...chat };
    body["self"] = body;
    expect(await failureOf(client.chat.create(body as typeof chat))).toMatchObject({ code: "invalid_body" });
    expect(service.requests).toEqual([]);
  });
});

describe("cancelling", () => {
  async function endless(options: ProfileClientOptions = {}): Promise<SetUp> {
    const made = await setUp(options);
    made.service.script = async ({ operation, writer, partial, stopped }) => {
      await partial(writer.textDelta(0, "x"));
      await stopped;
      // What is on its way when a cancel crosses it.
      operation.partial(writer.textDelta(0, "late"));
      operation.result({ event: writer.completed(completion).event });
    };
    return made;
  }

  it("by the caller's signal throws its reason, and what is late is dropped", async () => {
    const { service, client } = await endless();
    const controller = new AbortController();
    const stream = client.chat.stream(chat, { signal: controller.signal });
    const reason = new Error("enough");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of stream) {
        if (event.type === "response.output_text.delta") seen.push(event.delta);
        controller.abort(reason);
      }
    })();
    await expect(reading).rejects.toBe(reason);
    expect(seen).toEqual(["x"]);
    await stream.call.operation?.ended;
    expect(stream.call.end?.event).toEqual({ type: "response.cancelled", reason: "client_cancelled" });
    expect(service.stops).toMatchObject([{ kind: "cancel" }]);
    await expect(stream.final()).rejects.toBe(reason);
  });

  it("before it is sent sends nothing", async () => {
    const { service, client } = await endless();
    const signal = AbortSignal.abort(new Error("no"));
    await expect(client.chat.create(chat, { signal })).rejects.toThrow("no");
    expect(service.requests).toEqual([]);
  });

  it("by leaving the loop", async () => {
    const { service, client } = await endless();
    const stream = client.chat.stream(chat);
    for await (const _event of stream) break;
    expect(stream.call.end?.event).toEqual({ type: "response.cancelled", reason: "client_cancelled" });
    await stream.call.operation?.ended;
    expect(service.stops).toMatchObject([{ kind: "cancel", reason: ReasonCode.userCancelled }]);
    expect(service.operations).toBe(0);
  });

  it("of a request without output ends at once", async () => {
    const { service, client } = await setUp();
    const asked = new Promise<void>((resolve) => {
      service.script = () => resolve();
    });
    const controller = new AbortController();
    const answer = client.chat.create(chat, { signal: controller.signal });
    await asked;
    controller.abort();
    await expect(answer).rejects.toThrow("aborted");
  });

  it("by a timeout, which the service knows as well", async () => {
    const clock = new ManualClock();
    const { service, client } = await endless({ clock });
    const call = client.call("chat.completions.create", chat, { timeoutMs: 500 });
    const events = [];
    for await (const event of call) {
      events.push(event.type);
      clock.advance(500);
    }
    expect(events).toEqual(["response.output_text.delta", "response.error"]);
    expect(call.end).toMatchObject({ status: 504, origin: "client", event: { error: { code: "request_timeout" } } });
    await call.operation?.ended;
    expect(service.stops).toMatchObject([{ kind: "cancel", reason: ReasonCode.deadlineExpired }]);
    expect(service.requests[0]?.policy).toEqual({ timeoutMs: 500 });
    expect(clock.pending).toBe(0);
  });

  it("by a deadline of NNRP", async () => {
    const clock = new ManualClock();
    const { service, client } = await setUp({ clock });
    const unixMs = Date.now() + 60_000;
    const deadline = new Promise((resolve) => {
      service.script = ({ operation }) => resolve(operation.deadline);
    });
    const answer = failureOf(client.chat.create(chat, { deadline: { unixMs } }));
    expect(await deadline).toMatchObject({ unixMs });
    clock.advance(unixMs - clock.now() - 1);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    expect(await answer).toMatchObject({ code: "request_timeout" });
  });

  it("forgets its timer and its listener at the end", async () => {
    const clock = new ManualClock();
    const { service, client } = await setUp({ clock });
    service.script = ({ writer, end }) => end(writer.completed(completion));
    await client.chat.create(chat, { timeoutMs: 500 });
    expect(clock.pending).toBe(0);
  });
});

describe("illegal streams are cancelled", () => {
  const text = '{"type":"response.output_text.delta","index":0,"delta":"x"}';
  const started = '{"type":"response.tool_call.started","index":0,"item_id":"i","call_id":"c","name":"f"}';

  it.each([
    ["no JSON", ["{"]],
    ["a wrong member", ['{"type":"response.output_text.delta","index":-1,"delta":"x"}']],
    ["a terminal as partial", ['{"type":"response.completed","body":{}}']],
    ["a call twice", [started, started]],
    [
      "a piece of no call",
      ['{"type":"response.tool_call.delta","index":0,"item_id":"i","call_id":"c","arguments_delta":""}'],
    ],
  ])("%s", async (_name, partials) => {
    const { service, client } = await setUp();
    service.script = async ({ operation, stopped }) => {
      operation.partial(text);
      for (const partial of partials) operation.partial(partial);
      await stopped;
    };
    const call = client.call("chat.completions.create", chat);
    const events = await all(call);
    expect(events[0]?.type).toBe("response.output_text.delta");
    expect(call.end).toMatchObject({ status: 502, event: { error: { code: "invalid_event_stream" } } });
    await call.operation?.ended;
    expect(service.stops).toMatchObject([{ kind: "cancel" }]);
  });

  it.each([
    ["a call left open", [started], { event: '{"type":"response.completed","body":{}}' }],
    ["a partial at the end", [], { event: text }],
    ["an unknown end", [], { event: '{"type":"response.other"}' }],
    ["no JSON at the end", [], { event: "x" }],
    ["a body that is not laid out", [], { raw: new Uint8Array([123, 125]), payloadKinds: 16, payloadCount: 1 }],
  ])("%s", async (_name, partials, result) => {
    const { service, client } = await setUp();
    service.script = ({ operation }) => {
      for (const partial of partials) operation.partial(partial);
      operation.result(result);
    };
    expect(await failureOf(client.chat.stream(chat).final())).toMatchObject({ code: "invalid_event_stream" });
  });

  it("what is unknown is ignored", async () => {
    const { service, client } = await setUp();
    service.script = ({ operation, writer, end }) => {
      operation.progress({ stage: 5 });
      operation.partial('{"type":"response.reasoning.delta","delta":"x"}');
      operation.partial(text);
      end(writer.completed(completion));
    };
    const events = await all(client.call("chat.completions.create", chat));
    expect(events.map(({ type }) => type)).toEqual(["response.output_text.delta", "response.completed"]);
  });

  it("an answer without end is cut at its limit", async () => {
    const { service, client } = await setUp({ limits: { responseBytes: 10_000 } });
    service.script = async ({ operation, writer, partial }) => {
      while (!operation.finished) {
        await partial(writer.textDelta(0, "x".repeat(100)));
        await turn();
      }
    };
    const call = client.call("chat.completions.create", chat);
    const events = await all(call);
    expect(call.end).toMatchObject({ event: { error: { code: "response_too_large" } } });
    expect(events.length).toBeLessThan(101);
    await call.operation?.ended;
    expect(service.operations).toBe(0);
  });
});

it("a slow reader holds up the service, and gets everything", async () => {
  const { service, client } = await setUp({
    limitsOf: { server: { writableBytes: 16_384 }, client: { unreadBytes: 65_536 } },
  });
  const total = 3000;
  let written = 0;
  let isHeld = (): void => {};
  const held = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  service.script = async ({ operation, writer, end }) => {
    while (written < total) {
      const isWritable = operation.partial(writer.textDelta(0, String(written)));
      written += 1;
      if (isWritable) continue;
      isHeld();
      while (!operation.writable) await turn();
    }
    end(writer.completed(completion));
  };
  const stream = client.chat.stream(chat)[Symbol.asyncIterator]();
  await stream.next();
  await held;
  // Nobody reads now: time passes without another event.
  for (let turns = 0; turns < 50; turns += 1) await turn();
  const whileHeld = written;
  expect(whileHeld).toBeLessThan(total);
  let read = 1;
  for (;;) {
    const { done } = await stream.next();
    if (done) break;
    read += 1;
  }
  expect(read).toBe(total + 1);
});

describe("what is advertised", () => {
  const document = createCapabilityDocument({
    compatibility_levels: [1],
    operations: [
      { name: "chat.completions.create", streaming: true, non_streaming: true, tool_calls: false, cancellation: true },
      { name: "models.list", streaming: false, non_streaming: true, tool_calls: false, cancellation: true },
    ],
    models: [],
    extensions: [{ name: "responses.events", critical: false, description: "" }],
  });

  it("bounds what is sent", async () => {
    const { service, client } = await setUp({ capabilities: document });
    service.script = ({ writer, end }) => end(writer.completed({ ...completion, data: [] }));
    expect(await failureOf(client.responses.create({ model: "m", input: "" }))).toMatchObject({
      code: "unsupported_operation",
      status: 400,
      failure: { origin: "client" },
    });
    expect(await failureOf(client.chat.create({ ...chat, tools: [{}] }))).toMatchObject({ param: "tools" });
    await all(client.responses.follow({ id: "resp_1", after: 3 }));
    await client.chat.create(chat);
    expect(service.requests.map(({ operation }) => operation)).toEqual(["responses.events", "chat.completions.create"]);
  });

  it("is read from the list of models", async () => {
    const { service, client } = await setUp();
    service.script = ({ writer, end }) => end(writer.completed({ object: "list", data: [], nnrp: document }));
    expect(client.capabilities).toBeUndefined();
    expect(await client.loadCapabilities()).toEqual(document);
    expect(await failureOf(client.embeddings.create({ model: "m", input: "" }))).toMatchObject({
      code: "unsupported_operation",
    });
    service.script = ({ writer, end }) => end(writer.completed({ object: "list", data: [] }));
    expect(await client.loadCapabilities()).toBeUndefined();
    expect(client.capabilities).toBeUndefined();
  });
});

it("sends what a request asks of NNRP and of the service", async () => {
  const { service, client } = await setUp({ authorization: "Bearer a" });
  service.script = async ({ writer, partial, end }) => {
    await partial(writer.diagnostics({ runtime: "r", ttftMs: 3 }));
    // Priority and trace context follow the submit.
    await turn();
    end(writer.completed(completion));
  };
  const priority = { priorityClass: SessionPriorityClass.interactive };
  const traceContext = { traceId: 5n, spanId: 6n, sampled: true };
  const stream = client.chat.stream(chat, { diagnostics: true, onDisconnect: "continue", priority, traceContext });
  await stream.final();
  await client.chat.create(chat, { authorization: "Bearer b" });
  expect(stream.call.diagnostics).toEqual({ requestId: stream.call.requestId, runtime: "r", ttftMs: 3 });
  expect(service.requests.map(({ policy }) => policy)).toEqual([
    { authorization: "Bearer a", diagnostics: true, onDisconnect: "continue" },
    { authorization: "Bearer b" },
  ]);
  expect(service.priorities).toMatchObject([priority]);
  expect(service.traces).toMatchObject([traceContext]);
});
