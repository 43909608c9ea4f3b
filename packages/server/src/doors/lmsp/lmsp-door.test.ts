import { type Core, type ProblemCode, problems } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testSha256, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { beginCall, callDoor, type TestRequest } from "../shared/testing/call-door.ts";
import type { MemoryResponder } from "../shared/testing/memory-responder.ts";
import { type DoorUnderTest, type NeutralChat, testDoor } from "../shared/testing/test-door.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

const door = createTestDoor({
  interfaces: ({ origin }) => [{ kind: "lmsp", url: `${origin}/lmsp/v1`, version: "1.0" }],
});

interface WireEvent {
  readonly id?: string;
  readonly event: string;
  readonly data: Record<string, unknown> & { readonly type?: string };
}

function eventsOf(text: string): WireEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => {
      const fields = Object.fromEntries(
        block.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]),
      );
      return { ...fields, data: JSON.parse(fields["data"] ?? "null") } as WireEvent;
    });
}

interface WireResponse {
  readonly id: string;
  readonly status: string;
  readonly incomplete_reason?: string;
  readonly output: readonly {
    readonly type: string;
    readonly name: string;
    readonly arguments: string;
    readonly content?: readonly { readonly text: string }[];
  }[];
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

function toPost(chat: NeutralChat, stream: boolean): TestRequest {
  const { schema } = chat;
  return {
    method: "POST",
    path: "/lmsp/v1/responses",
    body: {
      model: chat.model,
      input: [
        { type: "message", role: "system", content: chat.system },
        { type: "message", role: "user", content: [{ type: "input_text", text: chat.user }] },
      ],
      tools: chat.tools,
      tool_choice: chat.toolChoice,
      output: {
        max_tokens: chat.maxTokens,
        ...(schema ? { format: { type: "json_schema", name: "answer", schema } } : {}),
      },
      sampling: { temperature: chat.temperature, top_p: chat.topP, seed: chat.seed, stop: chat.stop },
      stream,
    },
  };
}

function read(answer: MemoryResponder, stream: boolean): ReturnType<DoorUnderTest["read"]> {
  const last = stream ? eventsOf(answer.text).at(-1)?.data["response"] : JSON.parse(answer.text);
  const response = last as WireResponse;
  const calls = response.output.filter(({ type }) => type === "function_call");
  return {
    text: response.output.flatMap(({ content }) => content?.map(({ text }) => text) ?? []).join(""),
    calls: calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
    finishReason: response.incomplete_reason ?? (calls.length > 0 ? "calls" : response.status),
    inputTokens: response.usage?.input_tokens ?? 0,
    outputTokens: response.usage?.output_tokens ?? 0,
  };
}

testDoor({
  name: "lmsp responses",
  door,
  chat: toPost,
  read,
  finishReasons: { stop: "completed", length: "max_tokens", toolCalls: "calls" },
  readError: (answer) => {
    const problem = JSON.parse(answer.text) as { detail: string; param?: string };
    return { message: problem.detail, ...(problem.param === undefined ? {} : { param: problem.param }) };
  },
  statusOf: (code: ProblemCode) => problems[code].status,
  without: [],
  readStreamError: (answer) => JSON.stringify(eventsOf(answer.text).at(-1)?.data),
});

function setUp(options: { readonly tokens?: Parameters<typeof createTestCore>[0]["tokens"] } = {}) {
  const backend = new ScriptedBackend("scripted", [scriptedModel("acme/tiny:q4", { aliases: ["tiny"] })]);
  const core = createTestCore({ backends: [backend], ...(options.tokens ? { tokens: options.tokens } : {}) });
  return { backend, core };
}

const post = (body: Record<string, unknown>, headers: Record<string, string> = {}): TestRequest => ({
  method: "POST",
  path: "/lmsp/v1/responses",
  headers,
  body: { model: "tiny", input: "Hi", ...body },
});

async function json(core: Core, method: string, path: string, headers?: Record<string, string>) {
  const answer = await callDoor(door, core, { method, path, ...(headers ? { headers } : {}) });
  return {
    status: answer.status,
    headers: answer.headers,
    body: answer.text === "" ? undefined : JSON.parse(answer.text),
  };
}

describe("lmsp door", () => {
  it("numbers events from 1 without a gap; progress has no number", async () => {
    const { core, backend } = setUp();
    backend.answer = function* (request, signal) {
      yield [{ type: "progress", progress: { kind: "loading" } }];
      yield* textAnswer(["a", "b"])(request, signal) as Iterable<never>;
    };
    const answer = await callDoor(door, core, post({ stream: true }));
    const numbered = eventsOf(answer.text).filter(({ id }) => id !== undefined);
    expect(numbered.map(({ id }) => Number(id))).toEqual(numbered.map((_event, index) => index + 1));
    for (const { id, event, data } of numbered) {
      expect(data).toMatchObject({ type: event, sequence: Number(id) });
      expect(data["at_ms"]).toBeTypeOf("number");
    }
    expect(answer.headers).toMatchObject({ "content-type": "text/event-stream; charset=utf-8" });
    expect(answer.headers["location"]).toBe(`/lmsp/v1/responses/${answer.headers["x-lmsp-response-id"]}`);
  });

  it("resumes after every event with the same bytes, by header and by query (LMSP-01)", async () => {
    const { core, backend } = setUp();
    backend.answer = textAnswer(["a", "b", "é🦀"]);
    const whole = await callDoor(door, core, post({ stream: true }));
    const blocks = whole.text.split("\n\n").filter((block) => block !== "");
    const path = `${whole.headers["location"]}/events`;
    for (let after = 0; after < blocks.length; after += 1) {
      const rest = blocks
        .slice(after)
        .map((block) => `${block}\n\n`)
        .join("");
      const byHeader = await callDoor(door, core, { method: "GET", path, headers: { "last-event-id": String(after) } });
      const byQuery = await callDoor(door, core, { method: "GET", path: `${path}?after=${after}` });
      expect(byHeader.text).toBe(rest);
      expect(byQuery.text).toBe(rest);
    }
    const end = await callDoor(door, core, { method: "GET", path: `${path}?after=${blocks.length}` });
    expect(end).toMatchObject({ status: 204, text: "", hasEnded: true });
    const beyond = await callDoor(door, core, { method: "GET", path: `${path}?after=9999` });
    expect(beyond.status).toBe(204);
  });

  it.each(["-1", "x", "1.5", "99999999999999999999"])("refuses to resume after %s", async (after) => {
    const { core } = setUp();
    const made = await callDoor(door, core, post({}));
    const path = `/lmsp/v1/responses/${made.headers["x-lmsp-response-id"]}/events?after=${after}`;
    const { status, body } = await json(core, "GET", path);
    expect(status).toBe(400);
    expect(body).toMatchObject({ type: "urn:lmsp:problem:invalid-request", param: "after" });
  });

  it("a lost stream goes on and is read from where it was cut", async () => {
    const { core, backend } = setUp();
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    backend.answer = async function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "before " }];
      await gate;
      yield [
        { type: "text", candidate: 0, delta: "after" },
        { type: "finish", candidate: 0, finishReason: "stop" },
      ];
    };
    const { responder, done } = beginCall(door, core, post({ stream: true }));
    await expect.poll(() => responder.text).toContain("before");
    responder.close();
    await done;
    const seen = eventsOf(responder.text);
    open();
    const path = `${responder.headers["location"]}/events?after=${seen.at(-1)?.id}`;
    const rest = eventsOf((await callDoor(door, core, { method: "GET", path })).text);
    const deltas = [...seen, ...rest].filter(({ event }) => event === "response.output_text.delta");
    expect(deltas.map(({ data }) => data["delta"]).join("")).toBe("before after");
    expect([...seen, ...rest].map(({ id }) => Number(id))).toEqual(
      [...seen, ...rest].map((_event, index) => index + 1),
    );
  });

  it("a slow reader stops only its own place", async () => {
    const { core, backend } = setUp();
    backend.answer = textAnswer(Array.from({ length: 2_000 }, (_, index) => `${index} `));
    const { responder, done } = beginCall(door, core, post({ stream: true }));
    responder.isFull = true;
    await expect.poll(() => core.responses.active).toBe(0);
    expect(responder.writes.length).toBeLessThan(20);
    responder.drain();
    await done;
    expect(eventsOf(responder.text).at(-1)?.event).toBe("response.completed");
  });

  it("shows, lists, cancels and deletes", async () => {
    const { core, backend } = setUp();
    backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted" }];
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const { responder, done } = beginCall(door, core, post({ stream: true }));
    await expect.poll(() => responder.hasStarted).toBe(true);
    const path = responder.headers["location"] ?? "";
    expect((await json(core, "GET", path)).body).toMatchObject({
      status: "in_progress",
      model: "acme/tiny:q4",
      door: "lmsp",
    });
    expect((await json(core, "GET", "/lmsp/v1/responses?status=in_progress")).body).toMatchObject({
      data: [{}],
      next_cursor: null,
    });
    expect((await json(core, "POST", `${path}/cancel`)).body).toMatchObject({ status: "cancelled" });
    await done;
    expect(eventsOf(responder.text).at(-1)).toMatchObject({ event: "response.cancelled" });
    expect((await json(core, "POST", `${path}/cancel`)).status).toBe(200);
    expect((await json(core, "DELETE", path)).status).toBe(204);
    expect((await json(core, "GET", path)).status).toBe(404);
  });

  it("changes what waits or runs, and says why it can't", async () => {
    const { core, backend } = setUp();
    backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted" }];
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const { responder, done } = beginCall(door, core, post({ stream: true }));
    await expect.poll(() => responder.hasStarted).toBe(true);
    const path = responder.headers["location"] ?? "";
    const patch = async (body: object, headers: Record<string, string> = {}) => {
      const answer = await callDoor(door, core, { method: "PATCH", path, body, headers });
      return { status: answer.status, body: JSON.parse(answer.text) };
    };
    const deadline = new Date(core.clock.now() + 3_600_000).toISOString();
    expect(await patch({ priority: 3, deadline, other: 1 })).toMatchObject({
      status: 200,
      body: { priority: 3, deadline, status: "in_progress" },
    });
    expect(await patch({ priority: null, timeout_ms: 60_000 })).toMatchObject({ body: { priority: 3 } });
    expect((await json(core, "GET", path)).body.deadline < deadline).toBe(true);
    expect(await patch({})).toMatchObject({ status: 400 });
    expect(await patch({ priority: 9 })).toMatchObject({ status: 400, body: { param: "priority" } });
    expect(await patch({ timeout_ms: "1" })).toMatchObject({ status: 400, body: { param: "timeout_ms" } });
    expect(await patch({ priority: 1, other: 1 }, { prefer: "handling=strict" })).toMatchObject({ status: 400 });
    expect(await patch({ deadline: "2001-01-01T00:00:00Z" })).toMatchObject({
      status: 504,
      body: { type: "urn:lmsp:problem:deadline-exceeded" },
    });
    await json(core, "POST", `${path}/cancel`);
    await done;
    expect(await patch({ priority: 1 })).toMatchObject({ status: 409, body: { type: "urn:lmsp:problem:conflict" } });
  });

  it("fetches models by id and alias, slashes and colons encoded or not; the list has an ETag", async () => {
    const { core, backend } = setUp();
    for (const id of ["acme/tiny:q4", "acme%2Ftiny:q4", "acme%2Ftiny%3Aq4", "tiny"]) {
      expect((await json(core, "GET", `/lmsp/v1/models/${id}`)).body).toMatchObject({
        id: "acme/tiny:q4",
        state: "loaded",
      });
    }
    const missing = await json(core, "GET", "/lmsp/v1/models/acme%2Fother");
    expect(missing).toMatchObject({ status: 404, body: { type: "urn:lmsp:problem:model-not-found" } });
    const list = await json(core, "GET", "/lmsp/v1/models");
    expect(list.body.data).toHaveLength(1);
    const etag = list.headers["etag"] ?? "";
    expect((await json(core, "GET", "/lmsp/v1/models", { "if-none-match": etag })).status).toBe(304);
    backend.setModels([scriptedModel("other")]);
    expect((await json(core, "GET", "/lmsp/v1/models", { "if-none-match": etag })).status).toBe(200);
  });

  it("tells a token only of the models that it may use", async () => {
    const backend = new ScriptedBackend("scripted", [scriptedModel("mine"), scriptedModel("secret")]);
    const token = { principal: "ann", sha256: testSha256("t"), scopes: ["read" as const], models: ["mine"] };
    const core = createTestCore({ backends: [backend], tokens: [token] });
    const headers = { authorization: "Bearer t" };
    for (const id of ["secret", "nope"]) {
      const answer = await json(core, "GET", `/lmsp/v1/models/${id}`, headers);
      expect(answer.status).toBe(404);
      expect(JSON.stringify(answer.body).replace(`'${id}'`, "").replace(`"model":"${id}"`, "")).not.toContain("secret");
    }
    expect((await json(core, "GET", "/lmsp/v1/models", headers)).body.data).toHaveLength(1);
  });

  it("a reconnecting browser's Last-Event-ID wins over the address that it comes back to", async () => {
    const { core } = setUp();
    const made = await callDoor(door, core, post({}));
    const path = `/lmsp/v1/responses/${made.headers["x-lmsp-response-id"]}/events?after=2`;
    const again = await callDoor(door, core, { method: "GET", path, headers: { "last-event-id": "4" } });
    expect(eventsOf(again.text)[0]?.id).toBe("5");
  });

  it("a renderer's fault ends its own stream and nothing else", async () => {
    const { core, backend } = setUp();
    backend.answer = function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
      // A value that no JSON has: the renderer throws on it.
      yield [
        { type: "text", candidate: 0, delta: "y", logprobs: [{ token: 1n as never, logprob: 0, bytes: [], top: [] }] },
      ];
      yield [{ type: "finish", candidate: 0, finishReason: "stop" }];
    };
    const answer = await callDoor(door, core, post({ stream: true }));
    expect(answer.hasEnded).toBe(true);
    backend.answer = textAnswer(["fine"]);
    expect((await callDoor(door, core, post({}))).status).toBe(200);
  });

  it("describes the service to everyone, without model names", async () => {
    const { core } = setUp({ tokens: [{ principal: "ann", sha256: testSha256("secret"), scopes: ["read"] }] });
    const { status, body } = await json(core, "GET", "/.well-known/lmsp");
    expect(status).toBe(200);
    expect(body).toMatchObject({ lmsp_version: "1.0", service: { name: "studio" }, interfaces: [{ kind: "lmsp" }] });
    expect(JSON.stringify(body)).not.toContain("tiny");
  });

  it("asks for tokens and scopes where there are tokens", async () => {
    const { core } = setUp({ tokens: [{ principal: "ann", sha256: testSha256("secret"), scopes: ["read"] }] });
    expect(await json(core, "GET", "/lmsp/v1/models")).toMatchObject({
      status: 401,
      headers: { "www-authenticate": "Bearer" },
    });
    expect((await json(core, "GET", "/lmsp/v1/models", { authorization: "Bearer wrong" })).status).toBe(401);
    expect((await json(core, "GET", "/lmsp/v1/models", { authorization: "bearer secret" })).status).toBe(200);
    const refused = await callDoor(door, core, post({}, { authorization: "Bearer secret" }));
    expect(refused.status).toBe(403);
  });

  it("is open without tokens, whatever the header", async () => {
    const { core } = setUp();
    expect((await json(core, "GET", "/lmsp/v1/models", { authorization: "Bearer any" })).status).toBe(200);
  });

  it("refuses unknown members only when asked to be strict", async () => {
    const { core } = setUp();
    expect((await callDoor(door, core, post({ colour: "red" }))).status).toBe(200);
    const strict = await callDoor(door, core, post({ colour: "red" }, { prefer: "handling=strict" }));
    expect(strict.status).toBe(400);
    expect(JSON.parse(strict.text).detail).toContain("colour");
  });

  it.each<[string, TestRequest, number, string, string | undefined]>([
    ["no model", post({ model: undefined }), 400, "invalid-request", "model"],
    ["model of a wrong type", post({ model: 5 }), 400, "invalid-request", "model"],
    ["input of a wrong type", post({ input: 5 }), 400, "invalid-request", "input"],
    ["an unknown role", post({ input: [{ role: "king", content: "x" }] }), 400, "invalid-request", "input[0].role"],
    [
      "content of a wrong type",
      post({ input: [{ role: "user", content: 1 }] }),
      400,
      "invalid-request",
      "input[0].content",
    ],
    [
      "a temperature in words",
      post({ sampling: { temperature: "hot" } }),
      400,
      "invalid-request",
      "sampling.temperature",
    ],
    ["a deadline in words", post({ deadline: "soon" }), 400, "invalid-request", "deadline"],
    ["a timeout beyond every timer", post({ timeout_ms: 9e15, stream: true }), 400, "invalid-request", "timeout_ms"],
    ["a deadline that has passed", post({ deadline: "2020-01-01T00:00:00Z" }), 504, "deadline-exceeded", undefined],
    ["a list of wrong items", post({ input: Array(1000).fill(1) }), 400, "invalid-request", "input[0]"],
    ["a wrong member of a mapping", post({ metadata: { a: "x", b: 1 } }), 400, "invalid-request", "metadata.b"],
    [
      "a body that is nested too deep",
      { ...post({}), body: `{"input":${"[".repeat(300)}${"]".repeat(300)}}` },
      400,
      "invalid-request",
      undefined,
    ],
    ["background", post({ background: "yes" }), 400, "invalid-request", "background"],
    ["invalid JSON", { ...post({}), body: '{"model":' }, 400, "invalid-json", undefined],
    ["no body", { ...post({}), body: "" }, 400, "invalid-json", undefined],
    ["a list as the body", { ...post({}), body: [] }, 400, "invalid-request", undefined],
    ["another media type", post({}, { "content-type": "text/plain" }), 415, "unsupported-media-type", "content-type"],
    ["an unknown path", { method: "GET", path: "/lmsp/v1/nothing" }, 404, "unsupported-operation", undefined],
    ["a wrong method", { method: "DELETE", path: "/lmsp/v1/models" }, 405, "method-not-allowed", undefined],
    ["an unknown response", { method: "GET", path: "/lmsp/v1/responses/resp_nope" }, 404, "not-found", "id"],
    ["a list of no entries", { method: "GET", path: "/lmsp/v1/responses?limit=0" }, 400, "invalid-request", "limit"],
  ])("bad input: %s", async (_name, request, status, code, param) => {
    const { core } = setUp();
    const answer = await callDoor(door, core, request);
    expect(answer.status, answer.text).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/problem+json");
    const body = JSON.parse(answer.text);
    expect(body).toMatchObject({ type: `urn:lmsp:problem:${code}`, status, instance: "req_test" });
    expect(body.param).toBe(param);
    expect(body.detail.length).toBeGreaterThan(10);
  });
});
