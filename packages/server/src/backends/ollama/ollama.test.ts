import type { Backend, BackendEvent, BackendModel, BackendRequest } from "@plenum/core";
import { CoreError } from "@plenum/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createOllamaBackend, type OllamaBackendOptions } from "./index.ts";
import { endless, FakeOllama, json, lines } from "./testing/fake-ollama.ts";
import { fixture } from "./testing/fixtures.ts";
import { chat, weather } from "./testing/requests.ts";

let server: FakeOllama;
const backends: Backend[] = [];
beforeEach(async () => {
  server = await new FakeOllama().start();
});
afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.close();
  await server.stop();
});

async function connect(options: Partial<OllamaBackendOptions> = {}): Promise<Backend> {
  const backend = createOllamaBackend({ id: "local", baseUrl: server.url, ...options });
  backends.push(backend);
  await backend.ready;
  return backend;
}

function model(backend: Backend, name: string): BackendModel {
  const found = backend.models().find((entry) => entry.name === name);
  if (found === undefined) throw new Error(`no model ${name}`);
  return found;
}

/** Resolves when the models are as wanted. */
async function until(backend: Backend, isSo: () => boolean): Promise<void> {
  if (isSo()) return;
  await new Promise<void>((resolve) => {
    const leave = backend.onChange(() => {
      if (!isSo()) return;
      leave();
      resolve();
    });
  });
}

const never = new AbortController().signal;
const asked = (changes: Partial<BackendRequest> = {}) =>
  chat({ model: "smollm2:135m", output: { format: { type: "text" }, maxTokens: 16 }, ...changes });

async function run(backend: Backend, request = asked(), signal = never): Promise<BackendEvent[]> {
  const events: BackendEvent[] = [];
  await backend.respond(request, (batch) => events.push(...batch), signal);
  return events;
}

describe("models", () => {
  it("are described by the server itself", async () => {
    const shown = model(await connect({ parallel: 2 }), "smollm2:135m");
    expect(shown).toMatchObject({
      title: "smollm2:135m",
      aliases: [],
      state: "available",
      capabilities: { chat: true, completion: true, embeddings: false, tools: false, reasoning: false, logprobs: true },
      limits: { parallel: 2 },
      details: {
        family: "llama",
        parameters: 134_515_008,
        quantization: "Q4_1",
        format: "gguf",
        sizeBytes: 98_363_007,
        digest: "sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        trainedContextTokens: 8192,
        chatTemplate: expect.stringContaining("<|im_start|>"),
      },
      createdAtMs: Date.parse("2026-11-30T09:09:04.943Z"),
    });
    // The server's own default context is not told while nothing is loaded: not known, so absent.
    expect(shown.limits.contextTokens).toBeUndefined();
    expect(shown.details.metadata).toMatchObject({ "general.architecture": "llama", "llama.block_count": 30 });
    expect(shown.details.metadata).not.toHaveProperty("tokenizer.ggml.tokens");
  });

  it.each<[string, string, object]>([
    ["tools", "tools-model:latest", { tools: "honoured", tool_choice: "emulated", parallel_tool_calls: "emulated" }],
    ["no tools", "smollm2:135m", { tools: "refused", tool_choice: "refused" }],
    ["thinking", "think-model:latest", { reasoning_effort: "emulated" }],
    ["no thinking", "smollm2:135m", { reasoning_effort: "without_effect" }],
    ["insert", "fim-model:latest", { suffix: "honoured" }],
    [
      "always",
      "smollm2:135m",
      { candidates: "emulated", logit_bias: "refused", typical_p: "honoured", logprobs: "honoured" },
    ],
    ["embeddings", "all-minilm:l6", { dimensions: "honoured", truncate: "honoured", keep_alive: "honoured" }],
  ])("say what becomes of a request's fields: %s", async (_name, name, parameters) => {
    expect(model(await connect(), name).parameters).toMatchObject(parameters);
  });

  it("have the weights' digest only where nothing else makes their answers", async () => {
    const backend = await connect();
    for (const name of ["tools-model:latest", "sys-model:latest"]) {
      expect(model(backend, name).details.digest).toBeUndefined();
    }
    expect(model(backend, "all-minilm:l6").details.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it("have their context from the Modelfile, and from the server once loaded", async () => {
    server.loaded.add("smollm2:135m");
    const backend = await connect();
    expect(model(backend, "sys-model:latest").limits.contextTokens).toBe(1024);
    expect(model(backend, "all-minilm:l6").limits.embeddingDimensions).toBe(384);
    expect(model(backend, "smollm2:135m")).toMatchObject({
      state: "loaded",
      limits: { contextTokens: 4096 },
      memoryBytes: 190_948_608,
      expiresAtMs: Date.parse("2026-11-30T09:23:50.273Z"),
    });
  });

  it("of a model with a name without a tag are found by both names", async () => {
    const backend = await connect();
    expect(model(backend, "tools-model:latest").aliases).toEqual(["tools-model"]);
    await run(backend, asked({ model: "tools-model" }));
    expect(server.bodies("/api/chat")[0]?.model).toBe("tools-model:latest");
  });

  it("are those that the configuration offers", async () => {
    const backend = await connect({ models: ["smol*", "tools-model", "a.l-minilm:l6"] });
    expect(backend.models().map(({ name }) => name)).toEqual(["smollm2:135m", "tools-model:latest"]);
  });

  it("run on Ollama's own engine refuse what it drops without a word", async () => {
    const { body } = fixture("show").response;
    const info = { "general.architecture": "qwen3", "qwen3.context_length": 1 };
    server.answers.set("/api/show", (_seen, response) => json(response, 200, { ...Object(body), model_info: info }));
    expect(model(await connect(), "smollm2:135m").parameters).toMatchObject({
      repeat_penalty: "refused",
      presence_penalty: "refused",
      typical_p: "refused",
      repeat_last_n: "without_effect",
      temperature: "honoured",
    });
  });

  it.each([
    ["0.12.11", true],
    ["0.12.10", false],
    ["0.0.0", true],
    ["1.0.0-rc1", true],
    ["unknown", false],
  ])("of version %s tell log probabilities: %s", async (version, expected) => {
    server.version = version;
    expect(model(await connect(), "smollm2:135m").capabilities.logprobs).toBe(expected);
  });

  it("that the server can't describe are unavailable, the others are not", async () => {
    server.answers.set("/api/show", ({ body }, response) => {
      if (body.model === "smollm2:135m") json(response, 500, { error: "bad manifest" });
      else json(response, 200, fixture("show").response.body);
    });
    const backend = await connect();
    expect(model(backend, "smollm2:135m")).toMatchObject({
      state: "unavailable",
      stateDetail: "Ollama can't describe smollm2:135m; pull it again, or remove it.",
    });
    expect(model(backend, "fim-model:latest").state).toBe("available");
  });

  it("are described once, not at every look", async () => {
    const backend = await connect({ probeIntervalMs: 10 });
    const shows = server.bodies("/api/show").length;
    const looks = server.bodies("/api/tags").length;
    server.loaded.add("smollm2:135m");
    await until(backend, () => model(backend, "smollm2:135m").state === "loaded");
    expect(server.bodies("/api/tags").length).toBeGreaterThan(looks);
    expect(server.bodies("/api/show")).toHaveLength(shows);
  });
});

describe("a server with many models", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  it("may take five seconds for each of them", async () => {
    const held: (() => void)[] = [];
    server.answers.set("/api/show", (_seen, response) => {
      held.push(() => json(response, 200, fixture("show").response.body));
    });
    const backend = createOllamaBackend({ id: "local", baseUrl: server.url });
    backends.push(backend);
    await expect.poll(() => held.length).toBe(4);
    for (const asked of [5, 6]) {
      vi.advanceTimersByTime(4_000);
      held.shift()?.();
      await expect.poll(() => server.bodies("/api/show").length).toBe(asked);
    }
    for (const answer of held) answer();
    await expect.poll(() => backend.models()).toHaveLength(6);
    expect(backend.models().every(({ state }) => state === "available")).toBe(true);
  });
});

describe("a server that goes away", () => {
  it("keeps its models, unavailable, and comes back by itself", async () => {
    const told: string[] = [];
    const logger = {
      info: (_fields: object, message: string) => told.push(message),
      warn: (_fields: object, message: string) => told.push(message),
    };
    const backend = await connect({ probeIntervalMs: 20, logger });
    const names = backend.models().map(({ name }) => name);
    await server.stop();
    await until(backend, () => model(backend, "smollm2:135m").state === "unavailable");
    expect(backend.models().map(({ name }) => name)).toEqual(names);
    expect(model(backend, "smollm2:135m").stateDetail).toMatch(/'local'.*ollama serve/);
    await expect(run(backend)).rejects.toMatchObject({ code: "backend-unavailable" });
    await server.start();
    await until(backend, () => model(backend, "smollm2:135m").state === "available");
    expect((await run(backend)).at(-1)?.type).toBe("usage");
    expect(told).toEqual(["runtime can't be used", "runtime is back"]);
  });

  it("that was never there says what to do", async () => {
    await server.stop();
    const backend = await connect();
    expect(backend.models()).toEqual([]);
    await expect(run(backend)).rejects.toMatchObject({
      code: "backend-unavailable",
      message: expect.stringContaining("ollama serve"),
    });
  });

  it("that never answers does not hold the start up", async () => {
    server.answers.set("/api/tags", () => {});
    const before = performance.now();
    await connect();
    const waited = performance.now() - before;
    process.stdout.write(`silent server: ready after ${Math.round(waited)} ms\n`);
    expect(waited).toBeGreaterThan(1_900);
  });

  it("that is no Ollama is not one", async () => {
    server.answers.set("/api/tags", (_seen, response) => void response.end("<html>"));
    const backend = await connect();
    await expect(run(backend)).rejects.toMatchObject({
      message: "Runtime local's answer is not JSON; correct its address.",
    });
  });

  it("and takes its stream with it: an error, not a normal end", async () => {
    const backend = await connect();
    server.answers.set("/api/chat", (_seen, response) => {
      response.write('{"message":{"content":"a"},"done":false}\n', () => response.destroy());
    });
    await expect(run(backend)).rejects.toMatchObject({ code: "backend-error" });
  });
});

describe("abort", () => {
  it.each<[string, (heard: () => void) => void]>([
    ["while it generates", () => server.answers.set("/api/chat", (_seen, response) => endless(response))],
    [
      "before the first token",
      (heard) =>
        server.answers.set("/api/chat", () => {
          heard();
        }),
    ],
  ])("closes the connection %s", async (name, prepare) => {
    const backend = await connect();
    const abort = new AbortController();
    const reason = new CoreError("cancelled", "stop");
    let abortedAt = 0;
    const stop = (): void => {
      abortedAt = performance.now();
      abort.abort(reason);
    };
    prepare(stop);
    const sink = (batch: readonly BackendEvent[]): void => {
      if (!abort.signal.aborted && batch.some(({ type }) => type === "text")) stop();
    };
    await expect(backend.respond(asked(), sink, abort.signal)).rejects.toBe(reason);
    const cutAt = await server.cut;
    process.stdout.write(`abort ${name}: closed at the server after ${(cutAt - abortedAt).toFixed(2)} ms\n`);
  });

  it("of embeddings closes it too", async () => {
    const backend = await connect();
    const abort = new AbortController();
    server.answers.set("/api/embed", () => abort.abort(new Error("stop")));
    const request = { model: "all-minilm:l6", inputs: ["a"], truncate: false, priority: 0, runtimeOptions: {} };
    await expect(backend.embed(request, abort.signal)).rejects.toThrow("stop");
    await server.cut;
  });
});

describe("loading", () => {
  it("is shown as progress and state, and ends as loaded", async () => {
    const backend = await connect();
    const states: string[] = [];
    backend.onChange(() => states.push(model(backend, "smollm2:135m").state));
    const events = await run(backend);
    expect(events[0]).toEqual({ type: "progress", progress: { kind: "loading" } });
    await until(backend, () => model(backend, "smollm2:135m").state === "loaded");
    expect(states[0]).toBe("loading");
    expect((await run(backend))[0]).toEqual({ type: "accepted" });
  });

  it.each<[string, string, object]>([
    ["smollm2:135m", "/api/generate", { model: "smollm2:135m", stream: false, keep_alive: "60000ms" }],
    ["all-minilm:l6", "/api/embed", { model: "all-minilm:l6", input: [], keep_alive: "60000ms" }],
  ])("%s through %s", async (name, path, body) => {
    const backend = await connect();
    await backend.load(name, { keepAliveMs: 60_000 }, never);
    expect(server.bodies(path)).toEqual([body]);
    expect(model(backend, name).state).toBe("loaded");
    await backend.unload(name);
    expect(server.bodies("/api/generate").at(-1)).toEqual({ model: name, keep_alive: 0, stream: false });
    expect(model(backend, name).state).toBe("available");
  });

  it("tells a lack of memory", async () => {
    const backend = await connect();
    const error = "model requires more system memory (9.1 GiB) than is available (3.2 GiB)";
    server.answers.set("/api/generate", (_seen, response) => json(response, 500, { error }));
    await expect(backend.load("smollm2:135m", {}, never)).rejects.toMatchObject({ code: "insufficient-memory" });
    expect(model(backend, "smollm2:135m").state).toBe("available");
  });

  it("keeps models as long as the backend is told", async () => {
    const backend = await connect({ keepAliveMs: -1 });
    await run(backend);
    await run(backend, asked({ keepAliveMs: 1000 }));
    expect(server.bodies("/api/chat").map((body) => body["keep_alive"])).toEqual([-1, "1000ms"]);
  });
});

it("sends the headers it was given with every request, over kept connections", async () => {
  const backend = await connect({ headers: { authorization: "Bearer key" } });
  const { connections } = server;
  for (let count = 0; count < 20; count += 1) await run(backend);
  process.stdout.write(`20 answers in turn: ${server.connections - connections} new connections\n`);
  expect(server.connections - connections).toBeLessThanOrEqual(1);
  expect(new Set(server.seen.map(({ headers }) => headers.authorization))).toEqual(new Set(["Bearer key"]));
});

it("an error before the stream is the call's error, with its own code, and nothing was accepted", async () => {
  const backend = await connect();
  const error = "server busy, please try again.  maximum pending requests exceeded";
  server.answers.set("/api/chat", (_seen, response) => json(response, 503, { error }));
  const events: BackendEvent[] = [];
  const running = backend.respond(asked(), (batch) => events.push(...batch), never);
  await expect(running).rejects.toMatchObject({ code: "overloaded" });
  expect(events.filter(({ type }) => type !== "progress")).toEqual([]);
});

it("a forced call goes out as a schema and comes back as a call", async () => {
  const backend = await connect();
  server.answers.set("/api/chat", (_seen, response) =>
    lines(response, [
      { message: { content: '{"name":"get_weather","arguments":{"city":"Paris"}}' }, done: false },
      { message: { content: "" }, done: true, done_reason: "stop", prompt_eval_count: 3, eval_count: 9 },
    ]),
  );
  const events = await run(backend, asked({ tools: [weather], toolChoice: "required" }));
  const [body] = server.bodies("/api/chat");
  expect(body).not.toHaveProperty("tools");
  expect(body).toMatchObject({
    messages: [{ role: "system", content: expect.stringContaining("get_weather") }, { role: "user" }],
    format: { properties: { name: { const: "get_weather" }, arguments: weather.parameters } },
  });
  expect(events).toContainEqual({ type: "function_call", candidate: 0, call: 0, name: "get_weather" });
  expect(events).toContainEqual(expect.objectContaining({ type: "finish", finishReason: "tool_calls" }));
});

describe("several answers", () => {
  it("are made side by side, with one accepted and one usage", async () => {
    const backend = await connect();
    const events = await run(backend, asked({ candidates: 3, sampling: { seed: 7 } }));
    expect(events.filter(({ type }) => type === "accepted")).toHaveLength(1);
    const finished = events.flatMap((event) => (event.type === "finish" ? [event.candidate] : []));
    expect(finished.toSorted()).toEqual([0, 1, 2]);
    expect(events.at(-1)).toMatchObject({ type: "usage", usage: { inputTokens: 13, outputTokens: 48 } });
    const options = server.bodies("/api/chat").map((body) => body.options);
    expect(options).toEqual([7, 8, 9].map((seed) => ({ num_predict: 16, seed })));
  });

  it("end together when one fails", async () => {
    const backend = await connect();
    let count = 0;
    server.answers.set("/api/chat", (_seen, response) => {
      count += 1;
      return count < 3 ? endless(response) : json(response, 500, { error: "boom" });
    });
    await expect(run(backend, asked({ candidates: 3 }))).rejects.toMatchObject({ message: "Runtime local: boom." });
    await server.cut;
  });

  it("end together when they are aborted", async () => {
    const backend = await connect();
    server.answers.set("/api/chat", (_seen, response) => endless(response));
    const abort = new AbortController();
    const sink = (batch: readonly BackendEvent[]): void => {
      if (batch.some(({ type }) => type === "text")) abort.abort(new Error("stop"));
    };
    await expect(backend.respond(asked({ candidates: 2 }), sink, abort.signal)).rejects.toThrow("stop");
    await server.cut;
  });
});

it("a prompt that does not fit is told with the context that was asked for", async () => {
  const backend = await connect();
  const error = "the input length exceeds the context length";
  server.answers.set("/api/chat", (_seen, response) => json(response, 400, { error }));
  const running = run(backend, asked({ runtimeOptions: { ollama: { num_ctx: 256 } } }));
  await expect(running).rejects.toMatchObject({ code: "context-length-exceeded", details: { limit: 256 } });
});

describe("embeddings", () => {
  const request = { model: "all-minilm:l6", inputs: ["a", "a cat"], truncate: false, priority: 0, runtimeOptions: {} };

  it("are given as the server made them (EMB-01)", async () => {
    const backend = await connect();
    server.answers.set("/api/embed", (_seen, response) =>
      json(response, 200, {
        embeddings: [
          [1, -2, 0.5],
          [1, 2, 3],
        ],
        prompt_eval_count: 2,
        load_duration: 3e6,
      }),
    );
    expect(await backend.embed(request, never)).toEqual({
      vectors: [Float32Array.of(1, -2, 0.5), Float32Array.of(1, 2, 3)],
      inputTokens: 2,
      loadMs: 3,
    });
  });

  it.each([
    ["too few", { embeddings: [[1]] }],
    ["an empty one", { embeddings: [[1], []] }],
    ["none", {}],
    ["no numbers", { embeddings: [["a"], ["b"]] }],
  ])("that are no vectors are the runtime's error: %s", async (_name, body) => {
    const backend = await connect();
    server.answers.set("/api/embed", (_seen, response) => json(response, 200, body));
    await expect(backend.embed(request, never)).rejects.toMatchObject({ code: "backend-error" });
  });

  it("longer than the model's are refused: Ollama takes them without a word", async () => {
    const asking = (await connect()).embed({ ...request, dimensions: 5000 }, never);
    await expect(asking).rejects.toMatchObject({ code: "invalid-request", details: { param: "dimensions" } });
  });
});
