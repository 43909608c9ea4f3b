import { createHash } from "node:crypto";
import { createTestCore, ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { describe, expect, test, vi } from "vitest";
import { beginCall, callDoor } from "../shared/testing/call-door.ts";
import { createOllamaDoor } from "./index.ts";
import { humanNumber } from "./models.ts";

const base = scriptedModel("x").capabilities;
const door = createOllamaDoor({ version: "1.2.3" });

function setUp(options: Partial<Parameters<typeof createTestCore>[0]> = {}) {
  const backend = new ScriptedBackend("scripted", [
    scriptedModel("m", { details: { digest: "sha256:aa" }, parameters: { top_k: "without_effect" } }),
    scriptedModel("same", { details: { digest: "sha256:aa" }, state: "available" }),
    scriptedModel("plain", { capabilities: { ...base, tools: false } }),
    scriptedModel("e", {
      capabilities: { ...base, chat: false, completion: false, embeddings: true },
      limits: { embeddingDimensions: 3, parallel: 1 },
    }),
  ]);
  const core = createTestCore({ backends: [backend], ...options });
  const post = (path: string, body: unknown, headers?: Record<string, string>) =>
    callDoor(door, core, { method: "POST", path, body, ...(headers === undefined ? {} : { headers }) });
  return { backend, core, post };
}

const messages = [{ role: "user", content: "Hi" }];

describe("models", () => {
  test("HEAD answers the headers of GET alone", async () => {
    const { core } = setUp();
    for (const path of ["/", "/api/version", "/api/tags", "/api/ps"]) {
      const got = await callDoor(door, core, { method: "GET", path });
      const head = await callDoor(door, core, { method: "HEAD", path });
      expect([head.status, head.headers, head.text]).toEqual([200, got.headers, ""]);
      expect(got.headers["content-length"]).toBe(String(got.text.length));
    }
  });

  test("each has a digest of its own, the same in tags and ps", async () => {
    const { core } = setUp();
    const list = async (path: string): Promise<{ name: string; digest: string }[]> =>
      JSON.parse((await callDoor(door, core, { method: "GET", path })).text).models;
    const [tags, loaded] = [await list("/api/tags"), await list("/api/ps")];
    expect(new Set(tags.map(({ digest }) => digest)).size).toBe(4);
    for (const { digest } of tags) expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(loaded.map(({ name }) => name)).toEqual(["m", "plain", "e"]);
    for (const { name, digest } of loaded) expect(tags).toContainEqual(expect.objectContaining({ name, digest }));
  });

  test("show fills in what clients look up", async () => {
    const { post } = setUp();
    const shown = JSON.parse((await post("/api/show", { model: "m:latest", verbose: true })).text);
    expect(shown).toMatchObject({ capabilities: ["completion", "tools"], parameters: expect.stringContaining("4096") });
  });

  test.each([
    [134_515_008, "134.52M"],
    [7_000_000_000, "7B"],
    [7_241_732_096, "7.2B"],
    [22_000_000, "22M"],
    [1_500, "2K"],
    [12, "12"],
  ])("%d parameters are %s", (count, text) => {
    expect(humanNumber(count)).toBe(text);
  });

  test("a token sees and uses its own models", async () => {
    const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
    const scopes = ["read", "infer"] as const;
    const tokens = [{ principal: "p", sha256: sha256("t"), scopes, models: ["plain"] }];
    const { core, post } = setUp({ tokens, sha256 });
    const headers = { authorization: "Bearer t" };
    const tags = await callDoor(door, core, { method: "GET", path: "/api/tags", headers });
    expect(JSON.parse(tags.text).models).toMatchObject([{ name: "plain" }]);
    expect((await post("/api/show", { model: "m" }, headers)).status).toBe(404);
    expect((await post("/api/chat", { model: "m", messages }, headers)).status).toBe(403);
    expect((await post("/api/chat", { model: "m" }, headers)).status).toBe(403);
    expect((await post("/api/chat", { model: "plain", messages }, headers)).status).toBe(200);
    const without = await callDoor(door, core, { method: "GET", path: "/api/tags" });
    expect([without.status, without.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    expect((await callDoor(door, core, { method: "HEAD", path: "/" })).status).toBe(200);
  });
});

describe("load and unload", () => {
  test.each([
    ["/api/chat", {}, "load", {}],
    ["/api/chat", { messages: [], keep_alive: "10m" }, "load", { keepAliveMs: 600_000 }],
    ["/api/generate", { prompt: "", keep_alive: -1 }, "load", { keepAliveMs: -1 }],
    ["/api/generate", { prompt: "", keep_alive: 0 }, "unload", undefined],
    ["/api/chat", { keep_alive: "0s" }, "unload", undefined],
  ])("%s %j", async (path, body, doneReason, options) => {
    const { backend, post } = setUp();
    const [load, unload] = [vi.spyOn(backend, "load"), vi.spyOn(backend, "unload")];
    const answer = await post(path, { model: "m", ...body });
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(JSON.parse(answer.text)).toMatchObject({ model: "m", done: true, done_reason: doneReason });
    if (options === undefined) expect(unload).toHaveBeenCalledWith("m");
    else expect(load).toHaveBeenCalledWith("m", options, expect.any(AbortSignal));
    expect(backend.requests).toHaveLength(0);
  });

  test("a client that leaves ends the load", async () => {
    const { backend, core } = setUp();
    let signal: AbortSignal | undefined;
    vi.spyOn(backend, "load").mockImplementation((...args: unknown[]) => {
      if (args[2] instanceof AbortSignal) signal = args[2];
      return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal?.reason)));
    });
    const { responder, done } = beginCall(door, core, { method: "POST", path: "/api/chat", body: { model: "m" } });
    await expect.poll(() => signal).toBeDefined();
    responder.close();
    await done;
    expect(signal?.aborted).toBe(true);
  });
});

describe("requests", () => {
  test.each([
    ["-1", -1],
    [-1, -1],
    ["-1m", -1],
    ["0", 0],
    [0, 0],
    ["5m", 300_000],
    [300, 300_000],
    ["1h30m", 5_400_000],
    [null, undefined],
  ])("keep_alive %j reaches the core (OLL-01)", async (keep_alive, keepAliveMs) => {
    const { backend, post } = setUp();
    await post("/api/chat", { model: "m", messages, keep_alive });
    expect(backend.requests[0]?.keepAliveMs).toBe(keepAliveMs);
  });

  test("LMSP's headers are read", async () => {
    const { backend, core, post } = setUp();
    const headers = { "x-lmsp-priority": "5", "x-lmsp-timeout-ms": "60000", "x-lmsp-on-disconnect": "continue" };
    await post("/api/generate", { model: "m", prompt: "Hi" }, headers);
    expect(backend.requests[0]).toMatchObject({ priority: 5, onDisconnect: "continue" });
    expect(backend.requests[0]?.deadlineMs).toBeGreaterThan(core.clock.now());
    expect((await post("/api/chat", { model: "m", messages }, { "x-lmsp-priority": "x" })).status).toBe(400);
  });

  test.each([true, false])("what the model takes without effect is named, stream %j", async (stream) => {
    const { backend, post } = setUp();
    const tools = [{ function: { name: "f" } }];
    const options = { top_k: 1, num_ctx: 99, "né\r\nx": 1 };
    const answer = await post("/api/chat", { model: "m", messages, options, stream });
    expect(answer.headers["x-lmsp-without-effect"]).toBe("options.num_ctx, options.top_k");
    const plain = await post("/api/chat", { model: "plain", messages, tools, stream });
    expect(plain.headers["x-lmsp-without-effect"]).toBe("tools");
    expect(backend.requests[1]?.tools).toEqual([]);
    const able = await post("/api/chat", { model: "m", messages, tools, stream });
    expect(able.headers["x-lmsp-without-effect"]).toBeUndefined();
  });

  test("the model is named as the client named it", async () => {
    const { post } = setUp();
    const answer = await post("/api/chat", { model: "m:latest", messages, stream: false });
    expect(JSON.parse(answer.text).model).toBe("m:latest");
  });
});

describe("tool calls", () => {
  const body = { model: "m", messages, tools: [{ function: { name: "f" } }] };
  const calling = (text: string, finishReason: "tool_calls" | "length" = "tool_calls") => {
    const made = setUp();
    made.backend.answer = function* () {
      yield [{ type: "accepted" }, { type: "function_call", candidate: 0, call: 0, name: "f" }];
      yield [{ type: "function_call_arguments", candidate: 0, call: 0, delta: text }];
      yield [{ type: "finish", candidate: 0, finishReason }];
    };
    return made;
  };

  test.each([true, false])("big whole numbers stay exact and a line stays a line, stream %j", async (stream) => {
    const { post } = calling('{"id":\n 12345678901234567890\n}');
    const answer = await post("/api/chat", { ...body, stream });
    expect(answer.text).toContain('"arguments":{"id":  12345678901234567890 }');
    expect(answer.text.trim().split("\n")).toHaveLength(stream ? 2 : 1);
  });

  test("no arguments are an empty object", async () => {
    const { post } = calling("");
    expect((await post("/api/chat", { ...body, stream: false })).text).toContain('"arguments":{}');
  });

  test("arguments that are no object are an error, not a guess", async () => {
    const { post } = calling("[1]");
    const whole = await post("/api/chat", { ...body, stream: false });
    expect([whole.status, JSON.parse(whole.text).error]).toEqual([500, expect.stringContaining("not a JSON object")]);
    const streamed = await post("/api/chat", { ...body, stream: true });
    expect(JSON.parse(streamed.text)).toEqual({ error: expect.stringContaining("not a JSON object") });
  });

  test.each([true, false])("a call cut by the limit is left out, stream %j", async (stream) => {
    const { post } = calling('{"a":', "length");
    const answer = await post("/api/chat", { ...body, stream });
    expect(JSON.parse(answer.text)).toMatchObject({ done: true, done_reason: "length" });
    expect(answer.text).not.toContain("tool_calls");
  });
});

describe("embeddings", () => {
  test("one vector for each text; defaults and options", async () => {
    const { backend, post } = setUp();
    const answer = await post("/api/embed", { model: "e", input: ["a", "b"], dimensions: 9, options: { num_ctx: 1 } });
    expect(JSON.parse(answer.text).embeddings).toHaveLength(2);
    expect(backend.embeddingRequests[0]).toMatchObject({ inputs: ["a", "b"], truncate: true });
    expect(backend.embeddingRequests[0]?.dimensions).toBeUndefined();
    expect(answer.headers["x-lmsp-without-effect"]).toBe("options.num_ctx, dimensions");
    await post("/api/embed", { model: "e", input: "a", dimensions: 2, truncate: false, keep_alive: "1m" });
    expect(backend.embeddingRequests[1]).toMatchObject({ dimensions: 2, truncate: false, keepAliveMs: 60_000 });
  });

  test.each(["", [], null])("%j only loads the model", async (input) => {
    const { backend, post } = setUp();
    const load = vi.spyOn(backend, "load");
    expect(JSON.parse((await post("/api/embed", { model: "e", input })).text)).toEqual({ model: "e", embeddings: [] });
    expect(load).toHaveBeenCalledOnce();
  });
});

test("a slow start sends the headers after ten seconds, and the answer after them", async () => {
  let fire: () => void = () => {};
  const clock = {
    now: () => 0,
    after: (delayMs: number, call: () => void) => {
      if (delayMs === 10_000) fire = call;
      return () => {};
    },
  };
  const { backend, core } = setUp({ clock });
  let release: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  backend.answer = async function* (request, signal) {
    await held;
    yield* textAnswer(["late"])(request, signal);
  };
  const body = { model: "m", messages };
  const { responder, done } = beginCall(door, core, { method: "POST", path: "/api/chat", body });
  await expect.poll(() => backend.running).toBe(1);
  expect(responder.hasStarted).toBe(false);
  fire();
  expect(responder.headers["x-lmsp-response-id"]).toMatch(/^resp_/);
  release();
  await done;
  expect(responder.text).toContain('"content":"late"');
});
