import { createHash } from "node:crypto";
import { createTestCore, ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { createTestDoor } from "./doors/lmsp/testing/create-test-door.ts";
import { createOllamaDoor } from "./doors/ollama/index.ts";
import { createOpenaiDoor } from "./doors/openai/index.ts";
import type { Door } from "./doors/shared/door.ts";
import { beginCall, callDoor } from "./doors/shared/testing/call-door.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

interface Api {
  readonly name: string;
  readonly door: Door;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const lmsp = createTestDoor();
const openai = createOpenaiDoor();
const ollama = createOllamaDoor({ version: "0" });
const messages = [{ role: "user", content: "Hi" }];

const apis: readonly Api[] = [
  { name: "lmsp", door: lmsp, path: "/lmsp/v1/responses", body: { model: "m", input: "Hi" } },
  { name: "openai chat", door: openai, path: "/v1/chat/completions", body: { model: "m", messages } },
  { name: "openai completions", door: openai, path: "/v1/completions", body: { model: "m", prompt: "Hi" } },
  { name: "openai responses", door: openai, path: "/v1/responses", body: { model: "m", input: "Hi" } },
  { name: "ollama chat", door: ollama, path: "/api/chat", body: { model: "m", messages, stream: false } },
  { name: "ollama generate", door: ollama, path: "/api/generate", body: { model: "m", prompt: "Hi", stream: false } },
];

function setUp({ door, path, body }: Api) {
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  const core = createTestCore({ backends: [backend], sha256 });
  const request = (changes: object = {}, key = "k") => ({
    method: "POST",
    path,
    headers: { "idempotency-key": key },
    body: { ...body, ...changes },
  });
  const ends: (() => void)[] = [];
  const gated: ScriptedBackend["answer"] = async function* (_request, signal) {
    yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
    await new Promise<void>((resolve, reject) => {
      ends.push(resolve);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    yield [
      { type: "text", candidate: 0, delta: "b" },
      { type: "finish", candidate: 0, finishReason: "stop" },
    ];
  };
  return {
    backend,
    core,
    gated,
    end: () => ends.shift()?.(),
    ask: (changes?: object, key?: string) => callDoor(door, core, request(changes, key)),
    begin: (changes?: object, key?: string) => beginCall(door, core, request(changes, key)),
  };
}

describe.each(apis)("Idempotency-Key, $name", (api) => {
  it("the same request again gets the same answer, and the model is asked once", async () => {
    const { ask, backend } = setUp(api);
    const first = await ask();
    const again = await ask();
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text).toBe(first.text);
    expect(again.headers).toEqual(first.headers);
    expect(backend.requests).toHaveLength(1);
    expect((await ask({}, "other")).headers["x-lmsp-response-id"]).not.toBe(first.headers["x-lmsp-response-id"]);
  });

  it("streamed, again byte for byte", async () => {
    const { ask, backend } = setUp(api);
    const first = await ask({ stream: true });
    const again = await ask({ stream: true });
    expect(again.text).toBe(first.text);
    expect(backend.requests).toHaveLength(1);
  });

  it("another body under the same key is refused", async () => {
    const { ask, backend } = setUp(api);
    await ask();
    expect((await ask({ model: "m", options: {}, user: "x" })).status).toBe(422);
    expect(backend.requests).toHaveLength(1);
  });

  it("while the first still runs, a whole answer is refused", async () => {
    const { ask, begin, backend, gated, end } = setUp(api);
    backend.answer = gated;
    const first = begin();
    await expect.poll(() => backend.running).toBe(1);
    expect((await ask()).status).toBe(409);
    end();
    await first.done;
    expect((await ask()).text).toBe(first.responder.text);
  });

  it("what was refused leaves the key free", async () => {
    const { ask, backend } = setUp(api);
    expect((await ask({ model: "none" })).status).toBe(404);
    expect((await ask()).status).toBe(200);
    expect(backend.requests).toHaveLength(1);
  });

  it("who was lost before the answer comes again and gets one", async () => {
    const { ask, begin, backend, gated } = setUp(api);
    const { answer } = backend;
    backend.answer = gated;
    const first = begin();
    await expect.poll(() => backend.running).toBe(1);
    first.responder.close();
    await first.done;
    backend.answer = answer;
    expect((await ask()).status).toBe(200);
    expect(backend.requests).toHaveLength(2);
  });

  it("a key that is none is refused by name", async () => {
    const { ask } = setUp(api);
    const answer = await ask({}, "x".repeat(256));
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("Idempotency-Key")]);
  });
});

describe("Idempotency-Key, streams that still run", () => {
  const [native, chat] = apis as readonly [Api, Api];

  it("a native one is joined, and both end with the same bytes", async () => {
    const { begin, backend, gated, end } = setUp(native);
    backend.answer = gated;
    const first = begin({ stream: true });
    await expect.poll(() => backend.running).toBe(1);
    const second = begin({ stream: true });
    await expect.poll(() => second.responder.text).toContain('"delta":"a"');
    end();
    await Promise.all([first.done, second.done]);
    expect(second.responder.text).toBe(first.responder.text);
    expect(backend.requests).toHaveLength(1);
  });

  it("elsewhere it is refused", async () => {
    const { ask, begin, backend, gated, end } = setUp(chat);
    backend.answer = gated;
    const first = begin({ stream: true });
    await expect.poll(() => backend.running).toBe(1);
    const refused = await ask({ stream: true });
    expect([refused.status, refused.headers["x-should-retry"]]).toEqual([409, "false"]);
    end();
    await first.done;
  });

  it("keys of different doors and principals are different keys", async () => {
    const one = setUp(native);
    await one.ask();
    const other = await callDoor(openai, one.core, {
      method: "POST",
      path: "/v1/chat/completions",
      headers: { "idempotency-key": "k" },
      body: chat.body,
    });
    expect(other.status).toBe(200);
    expect(one.backend.requests).toHaveLength(2);
  });
});

describe("X-LMSP-Supersedes", () => {
  it.each(apis)("ends an earlier response, $name", async (api) => {
    const { begin, backend, gated, core } = setUp(api);
    const { answer } = backend;
    backend.answer = gated;
    const first = begin();
    await expect.poll(() => backend.running).toBe(1);
    const { data } = await core.responses.list({ limit: 1 }, core.authenticator.authenticate(undefined, "x").principal);
    backend.answer = answer;
    const later = await callDoor(api.door, core, {
      method: "POST",
      path: api.path,
      headers: { "x-lmsp-supersedes": data[0]?.response.id ?? "" },
      body: api.body,
    });
    await first.done;
    expect([first.responder.status, later.status]).toEqual([499, 200]);
  });
});
