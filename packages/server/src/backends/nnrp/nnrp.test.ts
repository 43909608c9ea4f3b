import type { BackendRequest } from "@plenum/core";
import { SessionErrorCode } from "@plenum/nnrp";
import { profileError } from "@plenum/profile";
import { afterEach, describe, expect, it } from "vitest";
import { createNnrpBackend } from "./index.ts";
import {
  type Answer,
  failureOf,
  models,
  recorded,
  requestOf,
  run,
  type Script,
  type Setup,
  scripts,
  setUp,
  textOf,
  until,
} from "./testing/fixtures.ts";

const setups: Setup[] = [];
afterEach(async () => {
  for (const setup of setups.splice(0)) await setup.close();
});

function serve(chat: Script, options: Parameters<typeof setUp>[1] = {}, list: Script = models({ id: "m" })): Setup {
  const setup = setUp(scripts({ "models.list": list, "chat.completions.create": chat }), options);
  setups.push(setup);
  return setup;
}

const hello: Script = async ({ writer, partial, end }) => {
  await partial(writer.textDelta(0, "Hello"));
  end(writer.completed({}));
};

/** Never ends by itself. */
const endless: Script = async ({ writer, partial, stopped, operation }) => {
  await partial(writer.textDelta(0, "a"));
  await stopped;
  operation.drop(3);
};

const chats = ({ service }: Setup) => service.requests.filter(({ operation }) => operation.startsWith("chat"));

describe("the catalog", () => {
  const document = (operations: readonly object[]) => ({
    profile: "openai-compatible",
    schema_version: "openai-compatible/1",
    compatibility_levels: [1, 3],
    operations,
  });
  const listing =
    (operations: readonly object[] | undefined, ...data: readonly object[]): Script =>
    ({ writer, end }) =>
      end(writer.completed({ data, ...(operations === undefined ? {} : { nnrp: document(operations) }) }));

  it.each([
    [
      "no document: a chat with all that OpenAI's body asks for, and nothing more",
      undefined,
      {},
      "chat tools structuredOutput logprobs",
    ],
    [
      "a document without tools",
      [{ name: "chat.completions.create", tool_calls: false }],
      {},
      "chat structuredOutput logprobs",
    ],
    ["a document with embeddings alone", [{ name: "embeddings.create" }], {}, "embeddings"],
    [
      "what the list says of a model",
      [{ name: "chat.completions.create" }, { name: "embeddings.create" }],
      { capabilities: { embeddings: false, vision: true, reasoning: true, structured_output: false, tools: 7 } },
      "chat tools reasoning vision logprobs",
    ],
  ])("%s", async (_name, operations, entry, expected) => {
    const { backend } = serve(hello, {}, listing(operations, { id: "m", ...entry }));
    await backend.ready;
    const [model] = backend.models();
    const able = Object.entries(model?.capabilities ?? {}).flatMap(([name, can]) => (can ? [name] : []));
    expect(able.toSorted()).toEqual(expected.split(" ").toSorted());
  });

  it("has what the list tells beside names, and the models that are wanted", async () => {
    const list = models({ id: "m", max_model_len: 4096 }, { id: "other" });
    const { backend } = serve(hello, { models: ["m*"], parallel: 3 }, list);
    await backend.ready;
    expect(backend.models()).toMatchObject([
      { name: "m", state: "available", limits: { contextTokens: 4096, parallel: 3 } },
    ]);
  });

  it("has the configured models where the service has no list", async () => {
    const { backend } = serve(hello, { models: ["m", "many*"] }, recorded("error-operation"));
    await backend.ready;
    expect(backend.models()).toMatchObject([{ name: "m", state: "available" }]);
    expect(textOf(await run(backend))).toBe("Hello");
  });

  it("says what to do where there is neither", async () => {
    const { backend } = serve(hello, {}, recorded("error-operation"));
    await backend.ready;
    expect(await failureOf(run(backend))).toMatchObject({
      code: "backend-unavailable",
      detail: expect.stringContaining("name them in its `models`"),
    });
  });
});

describe("a service that leads back here", () => {
  const listing =
    (...services: readonly string[]): Script =>
    ({ writer, end }) =>
      end(
        writer.completed({
          data: [{ id: "m" }],
          nnrp: {
            profile: "openai-compatible",
            schema_version: "openai-compatible/1",
            compatibility_levels: [1],
            operations: [{ name: "chat.completions.create" }],
            services,
          },
        }),
      );

  it("is used while it does not, and tells who is behind it", async () => {
    const told: (readonly string[])[] = [];
    const { backend } = serve(
      hello,
      { serviceId: "here", onServices: (ids) => told.push(ids) },
      listing("b", "c", "no id"),
    );
    await backend.ready;
    expect(told).toEqual([["b", "c"]]);
    expect(textOf(await run(backend))).toBe("Hello");
  });

  it("is refused with one sentence, in the log and in the catalog, until its connection is opened again", async () => {
    const told: (readonly string[])[] = [];
    const warnings: object[] = [];
    const logger = { info: () => undefined, warn: (details: object) => warnings.push(details) };
    const options = { serviceId: "here", onServices: (ids: readonly string[]) => told.push(ids), logger };
    const setup = serve(hello, { ...options, models: ["m"], probeIntervalMs: 20 }, listing("b", "here"));
    const { backend, service } = setup;
    await backend.ready;
    const [refused] = backend.models();
    expect(refused).toMatchObject({ state: "unavailable", stateDetail: expect.stringContaining("leads back") });
    const signal = new AbortController().signal;
    expect(await failureOf(backend.load("m", {}, signal))).toMatchObject({ code: "backend-unavailable" });
    expect(told.at(-1)).toEqual([]);
    // The other end refuses too, and does not name this service any more: no reason to begin again.
    let lists = 0;
    const honest = listing("b");
    service.script = scripts({
      "models.list": (answer) => {
        lists += 1;
        return honest(answer);
      },
      "chat.completions.create": hello,
    });
    await expect.poll(() => lists).toBeGreaterThan(2);
    expect(backend.models()[0]?.state).toBe("unavailable");
    expect(warnings).toHaveLength(1);
    service.dropConnections();
    await until(backend, () => backend.models()[0]?.state === "available");
    expect(told.at(-1)).toEqual(["b"]);
  });
});

describe("what is sent", () => {
  it.each<[string, Partial<BackendRequest>, object]>([
    ["a plain stream", {}, { stream: true, stream_options: { include_usage: true } }],
    ["a whole answer", { delivery: "whole" }, { stream: false }],
    [
      "sampling",
      { sampling: { topP: 0.5, stop: ["x"], logprobs: 2 } },
      { top_p: 0.5, stop: ["x"], logprobs: true, top_logprobs: 2 },
    ],
    [
      "a schema",
      { output: { format: { type: "json_schema", schema: { type: "object" }, strict: true }, maxTokens: 5 } },
      { max_tokens: 5, response_format: { type: "json_schema" } },
    ],
    [
      "tools",
      { tools: [{ name: "f" }], toolChoice: "required" },
      { tools: [{ function: { name: "f" } }], tool_choice: "required" },
    ],
    ["options for this kind alone", { runtimeOptions: { nnrp: { a: 1 }, vllm: { b: 1 } } }, { a: 1 }],
  ])("%s", async (_name, changes, body) => {
    const setup = serve(hello);
    await run(setup.backend, changes);
    expect(chats(setup)[0]?.body).toMatchObject({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body });
    expect(chats(setup)[0]?.body).not.toHaveProperty("nnrp");
  });

  it("the key as nnrp.authorization, the time that is left, and the priority in classes", async () => {
    // The priority comes right behind the request.
    const late: Script = (answer) => void setImmediate(() => void hello(answer));
    const setup = serve(late, { apiKey: "hush" });
    await run(setup.backend, { deadlineMs: Date.now() + 60_000, priority: -6 });
    const [asked] = chats(setup);
    expect(asked?.policy).toMatchObject({ authorization: "Bearer hush" });
    expect(asked?.policy.timeoutMs).toBeGreaterThan(50_000);
    expect(asked?.policy.timeoutMs).toBeLessThanOrEqual(60_000);
    expect(setup.service.priorities).toMatchObject([{ priorityClass: 2, delta: -2 }]);
  });

  it("the trace: whole beside the body, and as TRACE_CONTEXT what that can carry", async () => {
    const late: Script = (answer) => void setImmediate(() => void hello(answer));
    const setup = serve(late);
    const trace = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate: "a=1" };
    await run(setup.backend, { trace });
    const [asked] = chats(setup);
    expect(asked?.policy).toMatchObject(trace);
    expect(JSON.stringify(asked?.body)).not.toContain("4bf92f");
    expect(setup.service.traces).toMatchObject([
      { traceId: 0xa3ce929d0e0e4736n, spanId: 0x00f067aa0ba902b7n, sampled: true },
    ]);
  });

  it("takes PROGRESS over: what another Plenum says by its body, of other services the stage that needs no numbers", async () => {
    const told = (members: object) =>
      new TextEncoder().encode(JSON.stringify({ type: "response.progress", ...members }));
    const { backend } = serve(async (answer) => {
      const { operation } = answer;
      operation.progress({ stage: 1, body: told({ kind: "queued", position: 3, expected_wait_ms: 20 }) });
      operation.progress({ stage: 1 });
      operation.progress({ stage: 6 });
      operation.progress({ stage: 4, percent: 50, body: told({ kind: "prompt", done_tokens: 5, total_tokens: 10 }) });
      operation.progress({ stage: 4, percent: 50 });
      operation.progress({ stage: 6, body: told({ kind: "prompt", done_tokens: -5 }) });
      operation.progress({ stage: 1, body: new TextEncoder().encode("{") });
      await hello(answer);
    });
    const events = await run(backend);
    expect(events.flatMap((event) => (event.type === "progress" ? [event.progress] : []))).toEqual([
      { kind: "queued", position: 3, expectedWaitMs: 20 },
      { kind: "loading" },
      { kind: "prompt", doneTokens: 5, totalTokens: 10 },
      { kind: "loading" },
    ]);
    expect(textOf(events)).toBe("Hello");
  });

  it("nothing about urgency where there is none", async () => {
    const setup = serve(hello);
    await run(setup.backend);
    expect(chats(setup)[0]?.policy).toEqual({ openaiChunk: true });
    expect(setup.service.priorities).toEqual([]);
  });
});

describe("errors", () => {
  const failing =
    (code: string, status: number, message = "because"): Script =>
    ({ operation }) => {
      const error = { type: "server_error", code, message };
      operation.result({ event: JSON.stringify({ type: "response.error", error }) }, { status });
    };

  it.each([
    ["unsupported_model", 404, "because", "model-not-found"],
    ["context_length_exceeded", 400, "because", "context-length-exceeded"],
    ["bad", 500, "This model's maximum context length is 10 tokens.", "context-length-exceeded"],
    ["unsupported_operation", 400, "because", "unsupported-capability"],
    ["backend_overload", 503, "because", "overloaded"],
    ["rate_limit_exceeded", 429, "because", "overloaded"],
    ["invalid_api_key", 401, "because", "backend-error"],
    ["invalid_body", 400, "because", "backend-refused"],
    ["backend_error", 500, "because", "backend-error"],
    ["request_timeout", 504, "because", "backend-error"],
  ])("%s with %s: %s", async (code, status, message, expected) => {
    const { backend } = serve(failing(code, status, message));
    expect(await failureOf(run(backend))).toMatchObject({ code: expected });
  });

  it("a deadline that the service found passed", async () => {
    const { backend } = serve(failing("request_timeout", 504));
    expect(await failureOf(run(backend, { deadlineMs: Date.now() + 60_000 }))).toMatchObject({
      code: "deadline-exceeded",
    });
  });

  it("names the runtime, and hides the key", async () => {
    const { backend } = serve(failing("backend_error", 500, "key s3cret-key is odd"), { apiKey: "s3cret-key" });
    const failure = await failureOf(run(backend));
    expect(failure).toMatchObject({ detail: expect.stringContaining("far") });
    expect(JSON.stringify(failure)).not.toContain("s3cret-key");
  });

  it.each([
    ["error-model", "model-not-found"],
    ["error-midstream", "backend-error"],
    ["drop", "overloaded"],
  ])("recorded from the real peer: %s", async (scenario, code) => {
    const { backend } = serve(recorded(scenario));
    expect(await failureOf(run(backend))).toMatchObject({ code });
  });

  it("an illegal stream is cancelled", async () => {
    const setup = serve(async ({ operation, writer, stopped }) => {
      operation.partial(writer.textDelta(0, "a"));
      operation.partial('{"type":"response.completed","body":{}}');
      await stopped;
      operation.drop(3);
    });
    expect(await failureOf(run(setup.backend))).toMatchObject({ code: "backend-error" });
    expect(setup.service.stops).toMatchObject([{ kind: "cancel" }]);
  });

  it("a refused session", async () => {
    const setup = serve(hello, { models: ["m"] });
    setup.service.decision = { accept: false, code: SessionErrorCode.authFailed, reason: "no" };
    await setup.backend.ready;
    expect(setup.backend.models()).toMatchObject([
      { state: "unavailable", stateDetail: expect.stringContaining("does not accept this service's key") },
    ]);
  });

  it.each([
    ["tcp://127.0.0.1:1", "refuses connections"],
    ["nnrp://127.0.0.1", "needs a port"],
    ["unix:///nowhere/at-all.sock", "correct its"],
  ])("%s: %s", async (url, expected) => {
    const backend = createNnrpBackend({ id: "far", url, models: ["m"] });
    await backend.ready;
    expect(backend.models()[0]?.stateDetail).toContain(expected);
    expect(await failureOf(backend.load("m", {}, new AbortController().signal))).toMatchObject({
      code: "backend-unavailable",
    });
    await backend.close();
  });
});

it("sends an overlong conversation again with fewer turns, where the oldest may go", async () => {
  let asked = 0;
  const tooLong: Script = (answer) => {
    asked += 1;
    if (asked > 1) return hello(answer);
    const { error, status } = {
      error: profileError("invalid_body", "maximum context length is 10 tokens"),
      status: 400,
    };
    answer.operation.result({ event: JSON.stringify({ type: "response.error", error }) }, { status });
  };
  const setup = serve(tooLong);
  const message = (role: "user" | "assistant", text: string) =>
    ({ type: "message", role, content: [{ type: "text", text }] }) as const;
  const items = [message("user", "one"), message("assistant", "two"), message("user", "three")];
  const events = await run(setup.backend, { truncation: "oldest", input: { kind: "items", items } });
  expect(textOf(events)).toBe("Hello");
  expect(chats(setup).map(({ body }) => (body["messages"] as readonly object[]).length)).toEqual([3, 1]);
});

describe("places", () => {
  it("opens sessions as they are needed, on one connection, and gives them back", async () => {
    const begun: Answer[] = [];
    let all = (): void => {};
    const tenBegun = new Promise<void>((resolve) => {
      all = resolve;
    });
    const setup = serve(async (answer) => {
      begun.push(answer);
      if (begun.length === 10) all();
      await tenBegun;
      await hello(answer);
    });
    const runs = Array.from({ length: 10 }, () => run(setup.backend));
    await Promise.all(runs);
    const sessions = new Set(begun.map(({ operation }) => operation.session.id));
    // Four operations each, as the service grants.
    expect([setup.service.connections, sessions.size]).toEqual([1, 3]);
    await run(setup.backend);
    expect(new Set(begun.map(({ operation }) => operation.session.id)).size).toBe(3);
  });

  it("waits for a place where the service refuses more sessions", async () => {
    let live = 0;
    let most = 0;
    const setup = serve(
      async (answer) => {
        live += 1;
        most = Math.max(most, live);
        await new Promise((resolve) => setImmediate(resolve));
        live -= 1;
        await hello(answer);
      },
      { limits: { server: { sessionsPerConnection: 1 } } },
    );
    const runs = await Promise.all(Array.from({ length: 12 }, () => run(setup.backend)));
    expect(runs.map((events) => textOf(events))).toEqual(Array(12).fill("Hello"));
    expect(most).toBe(4);
  });

  it("a wait for a place is given up with its request", async () => {
    const setup = serve(endless, { limits: { server: { sessionsPerConnection: 1 } } });
    const aborts = Array.from({ length: 5 }, () => new AbortController());
    const runs = aborts.map(({ signal }) => failureOf(run(setup.backend, {}, signal)));
    const reason = new Error("enough");
    await new Promise((resolve) => setImmediate(resolve));
    for (const abort of aborts.toReversed()) abort.abort(reason);
    expect(await Promise.all(runs)).toEqual(Array(5).fill(reason));
    expect(setup.service.operations).toBe(0);
  });
});

describe("cancelling", () => {
  it("has settled when the service has no work with it any more", async () => {
    const setup = serve(endless);
    const abort = new AbortController();
    const reason = new Error("stop");
    await setup.backend.ready;
    const running = setup.backend.respond(requestOf(), () => abort.abort(reason), abort.signal);
    expect(await failureOf(running)).toBe(reason);
    expect(setup.service.operations).toBe(0);
    expect(setup.service.stops).toMatchObject([{ kind: "cancel" }]);
  });

  it("silence is cancelled in its time", async () => {
    const setup = serve(endless, { silenceTimeoutMs: 20 });
    expect(await failureOf(run(setup.backend))).toMatchObject({
      code: "backend-error",
      detail: expect.stringContaining("fell silent"),
    });
    expect(setup.service.stops).toMatchObject([{ kind: "cancel" }]);
  });
});

describe("a lost connection", () => {
  it("fails what runs, says so in the catalog, and is opened again", async () => {
    const setup = serve(endless);
    const { backend, service } = setup;
    await backend.ready;
    const states: (string | undefined)[] = [];
    const leave = backend.onChange(() => states.push(backend.models()[0]?.state));
    const running = failureOf(
      backend.respond(requestOf(), () => service.dropConnections(), new AbortController().signal),
    );
    expect(await running).toMatchObject({ code: "backend-unavailable" });
    await until(backend, () => backend.models()[0]?.state === "available" && service.connections > 1);
    leave();
    expect(states.at(0)).toBe("unavailable");
    service.script = scripts({ "models.list": models({ id: "m" }), "chat.completions.create": hello });
    expect(textOf(await run(backend))).toBe("Hello");
  });

  it("a closed backend lets go of everything", async () => {
    const setup = serve(endless);
    await setup.backend.ready;
    const running = failureOf(
      setup.backend.respond(requestOf(), () => void setup.backend.close(), new AbortController().signal),
    );
    expect(await running).toMatchObject({ code: expect.stringMatching(/^backend-/) });
    await setup.backend.close();
    expect(setup.service.operations).toBe(0);
  });
});
