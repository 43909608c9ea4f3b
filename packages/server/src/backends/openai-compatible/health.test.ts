/** What the backend knows of its server: models, capabilities, limits, and whether it is there. */
import { afterEach, describe, expect, it } from "vitest";
import { jsonAnswer, startReplayUpstream } from "../shared/testing/replay-upstream.ts";
import { createOpenaiCompatibleBackend } from "./index.ts";
import {
  chunk,
  modelList,
  recorded,
  requestOf,
  routes,
  run,
  type Setup,
  setUp,
  sseAnswer,
} from "./testing/fixtures.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function setUpFor(...args: Parameters<typeof setUp>): Promise<Setup> {
  const setup = await setUp(...args);
  closers.push(setup.close);
  return setup;
}

const never = new AbortController().signal;
const ok = sseAnswer([chunk({ content: "ok" }), chunk({}, "stop"), "[DONE]"]);

describe("models", () => {
  it("llama-server: slots, context of a slot, template, no embeddings", async () => {
    const { backend } = await setUpFor(
      routes({
        "/v1/models": () => recorded("llama-server-0.6.0/models"),
        "/props": () => recorded("llama-server-0.6.0/props"),
        "/v1/embeddings": () => recorded("llama-server-0.6.0/embeddings-not-enabled"),
      }),
      { kind: "llama-server" },
    );
    expect(backend.models()).toMatchObject([
      {
        name: "smollm2",
        state: "loaded",
        capabilities: { chat: true, embeddings: false, vision: false, reasoning: false },
        emulated: ["tools"],
        limits: { contextTokens: 2048, parallel: 2 },
        details: { parameters: 134515008, quantization: "Q4_1", trainedContextTokens: 8192 },
        parameters: { top_k: "honoured", tools: "emulated", reasoning_effort: "without_effect" },
      },
    ]);
    expect(backend.models()[0]?.limits).not.toHaveProperty("embeddingDimensions");
  });

  it("llama-server with --embeddings", async () => {
    const { backend } = await setUpFor(
      routes({
        "/v1/models": () => jsonAnswer({ data: [{ id: "minilm", meta: { n_embd: 384 } }] }),
        "/props": () => recorded("llama-server-0.6.0/embed-props"),
        "/v1/embeddings": ({ body }) =>
          typeof body === "object" && body !== null && "input" in body
            ? recorded("llama-server-0.6.0/embed-base64")
            : jsonAnswer({ error: { code: 400, message: '"input" or "content" must be provided' } }, 400),
      }),
      { kind: "llama-server" },
    );
    expect(backend.models()).toMatchObject([
      { capabilities: { chat: false, embeddings: true }, limits: { embeddingDimensions: 384, parallel: 4 } },
    ]);
    const request = { model: "minilm", inputs: ["hello world"], truncate: false, priority: 0, runtimeOptions: {} };
    const { vectors, inputTokens } = await backend.embed(request, never);
    expect(vectors[0]).toHaveLength(384);
    expect(inputTokens).toBe(4);
    const cut = await backend.embed({ ...request, dimensions: 8 }, never);
    expect(Math.hypot(...(cut.vectors[0] ?? []))).toBeCloseTo(1, 5);
    await expect(backend.embed({ ...request, dimensions: 385 }, never)).rejects.toMatchObject({
      code: "invalid-request",
      details: { param: "dimensions" },
    });
  });

  it("asks with a request that a log shows only once while the server is there", async () => {
    const { upstream } = await setUpFor(routes({ "/v1/embeddings": () => recorded("vllm-0.32.0/embeddings") }), {
      kind: "vllm",
      probeIntervalMs: 10,
    });
    const asked = (path: string) => upstream.requests.filter((request) => request.path === path).length;
    await expect.poll(() => asked("/v1/models")).toBeGreaterThan(3);
    expect(asked("/v1/embeddings")).toBe(1);
  });

  it("vLLM: context, many at once", async () => {
    const { backend } = await setUpFor(
      routes({
        "/v1/models": () => recorded("vllm-0.32.0/models"),
        "/v1/embeddings": () => recorded("vllm-0.32.0/embeddings"),
      }),
      { kind: "vllm" },
    );
    expect(backend.models()).toMatchObject([
      {
        name: "smollm2",
        state: "loaded",
        limits: { contextTokens: 2048, parallel: 64 },
        parameters: { typical_p: "refused" },
      },
    ]);
  });

  it("LM Studio: kind, context and state of each", async () => {
    const { backend } = await setUpFor(
      routes({
        "/v1/models": () => jsonAnswer({ data: [{ id: "a" }, { id: "b" }] }),
        "/api/v0/models": () =>
          jsonAnswer({
            data: [
              {
                id: "a",
                type: "vlm",
                state: "loaded",
                max_context_length: 4096,
                capabilities: ["tool_use"],
                arch: "x",
              },
              { id: "b", type: "embeddings", state: "not-loaded", max_context_length: 512 },
            ],
          }),
      }),
      { kind: "lm-studio" },
    );
    expect(backend.models()).toMatchObject([
      { state: "loaded", capabilities: { vision: true, chat: true }, emulated: [], limits: { contextTokens: 4096 } },
      { state: "available", capabilities: { embeddings: true, chat: false } },
    ]);
  });

  it("takes only wanted names, base URLs with /v1, and overrides", async () => {
    const list = jsonAnswer({ data: [{ id: "a/1" }, { id: "a/2" }, { id: "b/1" }, { id: "a/1" }] });
    const upstream = await startReplayUpstream(routes({ "/v1/models": () => list }));
    closers.push(upstream.close);
    const backend = createOpenaiCompatibleBackend({
      id: "t",
      baseUrl: `${upstream.url}/v1/`,
      apiKey: "test-only",
      models: ["a/*"],
      parallel: 3,
      capabilities: { vision: true },
    });
    closers.push(() => backend.close());
    await backend.ready;
    expect(backend.models().map(({ name }) => name)).toEqual(["a/1", "a/2"]);
    expect(backend.models()[0]).toMatchObject({ limits: { parallel: 3 }, capabilities: { vision: true } });
    expect(upstream.requests[0]?.headers.toLowerCase()).toContain("authorization: bearer test-only");
  });

  it("serves named models of a server without a list", async () => {
    const answers = routes({
      "/v1/models": () => jsonAnswer({ detail: "Not Found" }, 404),
      "/v1/chat/completions": () => ok,
    });
    const { backend } = await setUpFor(answers, { models: ["m-tiny"] });
    expect((await run(backend)).text).toBe("ok");
  });
});

describe("health", () => {
  it("an unreachable server: named models are unavailable and say what to do; it is seen when it comes back", async () => {
    const first = await startReplayUpstream(routes({}));
    await first.close();
    const backend = createOpenaiCompatibleBackend({
      id: "gpu",
      kind: "vllm",
      baseUrl: first.url,
      models: ["m-tiny"],
      probeIntervalMs: 50,
    });
    closers.push(() => backend.close());
    await backend.ready;
    expect(backend.models()).toMatchObject([
      { state: "unavailable", stateDetail: expect.stringMatching(/gpu.*start/s) },
    ]);
    expect(backend.models()[0]?.stateDetail).not.toContain("127.0.0.1");
    await expect(backend.load("m-tiny", {}, never)).rejects.toMatchObject({ code: "backend-unavailable" });
    expect((await run(backend)).error).toMatchObject({ code: "backend-unavailable" });
    const states: string[] = [];
    const back = new Promise<void>((resolve) => {
      backend.onChange(() => {
        states.push(backend.models()[0]?.state ?? "none");
        if (states.at(-1) === "loaded") resolve();
      });
    });
    const again = await startReplayUpstream(
      routes({ "/v1/chat/completions": () => ok }),
      Number(new URL(first.url).port),
    );
    closers.push(again.close);
    await back;
    expect(states).toEqual(["loaded"]);
    expect((await run(backend)).text).toBe("ok");
  });

  it("tells of a change only, and of a server that goes away", async () => {
    const { backend, upstream } = await setUpFor(routes({}), { probeIntervalMs: 20 });
    let changes = 0;
    const gone = new Promise<void>((resolve) => {
      backend.onChange(() => {
        changes += 1;
        resolve();
      });
    });
    const looks = upstream.requests.length;
    await expect.poll(() => upstream.requests.length).toBeGreaterThan(looks + 2);
    expect(changes).toBe(0);
    await upstream.close();
    await gone;
    expect(backend.models()).toMatchObject([{ name: "m-tiny", state: "unavailable" }]);
    expect(changes).toBe(1);
  });

  it("a server that knows nothing yet is unavailable, not without the model", async () => {
    const backend = createOpenaiCompatibleBackend({ id: "t", baseUrl: "http://127.0.0.1:1" });
    closers.push(() => backend.close());
    await backend.ready;
    expect(backend.models()).toEqual([]);
    expect((await run(backend)).error).toMatchObject({ code: "backend-unavailable" });
  });

  it("ready does not wait for a server that never answers", async () => {
    const upstream = await startReplayUpstream(() => ({ writes: [], end: "open" }));
    const backend = createOpenaiCompatibleBackend({ id: "t", baseUrl: upstream.url });
    const startedAt = performance.now();
    await backend.ready;
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    await backend.close();
    await upstream.close();
  });

  it("waits while the server loads its model", async () => {
    let asked = 0;
    const loading = recorded("llama-server-0.6.0/loading-models");
    const { backend } = await setUpFor(
      routes({
        "/v1/chat/completions": () => {
          asked += 1;
          return asked === 1 ? loading : ok;
        },
      }),
    );
    const { events, text } = await run(backend);
    expect(text).toBe("ok");
    expect(events[0]).toEqual({ type: "progress", progress: { kind: "loading" } });
    expect(events.filter(({ type }) => type === "accepted")).toHaveLength(1);
  });

  it("shows a server that loads as loading", async () => {
    const loading = recorded("llama-server-0.6.0/loading-models");
    const { backend } = await setUpFor(routes({ "/v1/models": () => loading }), {
      models: ["m"],
      kind: "llama-server",
    });
    expect(backend.models()).toMatchObject([{ state: "loading" }]);
  });
});

describe("tries again", () => {
  it("without the bound that does not fit beside the prompt", async () => {
    const refusal = recorded("vllm-0.32.0/err-max-tokens-over-context");
    const { backend, upstream } = await setUpFor(
      routes({
        "/v1/models": () => jsonAnswer(modelList),
        "/v1/chat/completions": ({ body }) => (JSON.stringify(body).includes("max_tokens") ? refusal : ok),
      }),
    );
    expect((await run(backend, { output: { format: { type: "text" }, maxTokens: 2000 } })).text).toBe("ok");
    expect(upstream.requests).toHaveLength(3);
  });

  it("with fewer turns when the oldest may go, and not when they may not", async () => {
    const refusal = recorded("llama-server-0.6.0/chat-context-overflow-stream");
    const { backend } = await setUpFor(
      routes({ "/v1/chat/completions": ({ body }) => (JSON.stringify(body).includes("first") ? refusal : ok) }),
    );
    const turns = ["first", "second"].map(
      (text) => ({ type: "message", role: "user", content: [{ type: "text", text }] }) as const,
    );
    const input = { kind: "items", items: turns } as const;
    expect((await run(backend, { input, truncation: "oldest" })).text).toBe("ok");
    expect((await run(backend, { input })).error).toMatchObject({ code: "context-length-exceeded" });
  });
});

describe("abort", () => {
  function* endless() {
    const [write] = sseAnswer([chunk({ content: "a" })]).writes;
    if (write !== undefined) for (;;) yield write;
  }

  it.each([
    ["in the stream", true],
    ["in the prompt", false],
  ])("%s closes the upstream connection", async (_name, hasOutput) => {
    const { backend, upstream } = await setUpFor(
      routes({ "/v1/chat/completions": () => ({ writes: hasOutput ? endless() : [], end: "open" }) }),
    );
    const abort = new AbortController();
    const reason = new Error("stop");
    const closed = upstream.closedByPeer();
    const running = backend.respond(
      requestOf(),
      (events) => {
        const wanted = hasOutput ? "text" : "accepted";
        if (events.some(({ type }) => type === wanted)) setImmediate(() => stop());
      },
      abort.signal,
    );
    let stoppedAt = 0;
    const stop = () => {
      stoppedAt ||= performance.now();
      abort.abort(reason);
    };
    await expect(running).rejects.toBe(reason);
    process.stdout.write(`abort to closed upstream connection: ${((await closed) - stoppedAt).toFixed(1)} ms\n`);
  });

  it("leaves no connection, timer or listener behind", async () => {
    const { backend, upstream, close } = await setUp(routes({ "/v1/chat/completions": () => ok }));
    const abort = new AbortController();
    for (let round = 0; round < 20; round += 1) await backend.respond(requestOf(), () => undefined, abort.signal);
    expect(upstream.connections).toBeLessThanOrEqual(2);
    await backend.close();
    await expect.poll(() => upstream.connections).toBe(0);
    expect(process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap")).toEqual([]);
    await close();
  });
});
