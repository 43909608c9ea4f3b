import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { type BackendEvent, type BackendRequest, CoreError, requestDefaults } from "@plenum/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEmbeddedBackend, type EmbeddedBackend } from "./index.ts";
import { chatModelFile, embeddingModelFile, missingModels } from "./testing/model-files.ts";

const timeoutMs = 120_000;
const never = new AbortController().signal;

function chat(text: string, changes: Partial<BackendRequest> = {}): BackendRequest {
  const items = [{ type: "message", role: "user", content: [{ type: "text", text }] }] as const;
  const sampling = { temperature: 0 };
  return { ...requestDefaults, model: "smollm2:135m", input: { kind: "items", items }, sampling, ...changes };
}

const short = (maxTokens: number) => ({ format: { type: "text" }, maxTokens }) as const;
const embedding = { truncate: false, priority: 0, runtimeOptions: {} } as const;

async function run(backend: EmbeddedBackend, request: BackendRequest, signal = never) {
  const events: BackendEvent[] = [];
  await backend.respond(request, (batch) => events.push(...batch), signal);
  return { events, text: textOf(events) };
}

function textOf(events: readonly BackendEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.delta : "")).join("");
}

async function failure(promise: Promise<unknown>): Promise<CoreError> {
  const error: unknown = await promise.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (error instanceof CoreError) return error;
  throw error;
}

function changed(backend: EmbeddedBackend, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!isSo()) return;
      stop();
      resolve();
    };
    const stop = backend.onChange(look);
    look();
  });
}

describe.skipIf(missingModels !== undefined)("embedded backend with real models", { timeout: timeoutMs }, () => {
  let backend: EmbeddedBackend;
  const stateOf = (name: string) => backend.models().find((model) => model.name === name)?.state;

  beforeAll(async () => {
    backend = createEmbeddedBackend({
      paths: [dirname(chatModelFile()), embeddingModelFile()],
      models: { "smollm2-135m-instruct-q4_1.gguf": { contextTokens: 512 } },
    });
    await backend.ready;
  });

  afterAll(() => backend.close());

  test("the catalog shows both models before any is loaded", async () => {
    const [chatModel, embeddingModel] = ["smollm2:135m", "all-minilm-l6-v2"].map((name) =>
      backend.models().find((model) => model.name === name),
    );
    expect(chatModel).toMatchObject({
      title: "Smollm2 135M Instruct",
      state: "available",
      capabilities: { chat: true, embeddings: false, tools: true, vision: false, logprobs: true, insert: false },
      emulated: ["tools"],
      limits: { contextTokens: 512, parallel: 4 },
      details: { family: "llama", parameters: 134_515_008, quantization: "Q4_1", trainedContextTokens: 8_192 },
    });
    expect(chatModel?.aliases).toContain("smollm2");
    expect(chatModel?.details.chatTemplate).toContain("SmolLM");
    expect(Object.values(chatModel?.details.metadata ?? {}).every((value) => typeof value !== "object")).toBe(true);
    expect(embeddingModel).toMatchObject({
      aliases: ["all-minilm", "all-minilm:latest"],
      capabilities: { chat: false, completion: false, embeddings: true },
      limits: { contextTokens: 512, embeddingDimensions: 384 },
    });
    await changed(backend, () => backend.models().every((model) => model.details.digest !== undefined));
    const digests = backend.models().map((model) => model.details.digest);
    expect(digests).toContain("sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
  });

  test("a chat loads the model and streams its answer in order", async () => {
    const { events, text } = await run(backend, chat("Name three colours.", { output: short(8) }));
    expect(text).toMatch(/^1\. Red:/);
    const kinds = events.map((event) => event.type).filter((kind, index, all) => kind !== all[index - 1]);
    expect(kinds.filter((kind) => kind !== "progress")).toEqual(["accepted", "text", "finish", "usage"]);
    expect(events[0]).toEqual({ type: "progress", progress: { kind: "loading" } });
    const accepted = events.find((event) => event.type === "accepted");
    expect(accepted?.inputTokens).toBe(34);
    expect(accepted?.loadMs).toBeGreaterThan(100);
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: accepted?.inputTokens, reasoningTokens: 0 } });
    expect(stateOf("smollm2:135m")).toBe("loaded");
    expect(backend.models().find((model) => model.name === "smollm2:135m")?.memoryBytes).toBeGreaterThan(100e6);
  });

  test("completions: raw goes in as it is, without raw through the template", async () => {
    const raw = { kind: "completion", prompt: "One, two, three,", raw: true } as const;
    const completed = await run(backend, chat("", { input: raw, output: short(4) }));
    expect(completed.events.find((event) => event.type === "accepted")?.inputTokens).toBeLessThan(10);
    expect(completed.text).toContain("four");
    const asked = await run(backend, chat("", { input: { ...raw, raw: false }, output: short(4) }));
    expect(asked.events.find((event) => event.type === "accepted")?.inputTokens).toBeGreaterThan(30);
  });

  test("JSON by a schema is forced and checked", async () => {
    const schema = {
      type: "object",
      properties: { capital: { type: "string", maxLength: 12 } },
      required: ["capital"],
    };
    const format = { type: "json_schema", schema, strict: true } as const;
    const { text } = await run(backend, chat("The capital of France, as JSON?", { output: { format, maxTokens: 60 } }));
    expect(JSON.parse(text)).toEqual({ capital: expect.any(String) });
  });

  test("a call is forced by tool_choice", async () => {
    const parameters = { type: "object", properties: { city: { enum: ["Paris", "Rome"] } }, required: ["city"] };
    const tools = [{ name: "get_weather", parameters }];
    const request = chat("Weather in Paris?", { tools, toolChoice: "required", parallelToolCalls: false });
    const { events } = await run(backend, { ...request, output: short(80) });
    expect(events).toContainEqual(expect.objectContaining({ type: "function_call", name: "get_weather" }));
    expect(events).toContainEqual(expect.objectContaining({ type: "finish", finishReason: "tool_calls" }));
  });

  test("too long a prompt is refused with numbers before it is accepted; truncation drops the oldest", async () => {
    const message = (role: "user" | "assistant", text: string) =>
      ({ type: "message", role, content: [{ type: "text", text }] }) as const;
    const old = Array.from({ length: 6 }, () => [message("user", "word ".repeat(150)), message("assistant", "Yes.")]);
    const items = [...old.flat(), message("user", "Name three colours.")];
    const request = chat("", { input: { kind: "items", items }, output: short(2) });
    const events: BackendEvent[] = [];
    const error = await failure(backend.respond(request, (batch) => events.push(...batch), never));
    expect(error).toMatchObject({ code: "context-length-exceeded", details: { limit: 512 } });
    expect(error.details.requested).toBeGreaterThan(900);
    expect(events.some((event) => event.type === "accepted")).toBe(false);
    const cut = await run(backend, { ...request, truncation: "oldest" });
    const accepted = cut.events.find((event) => event.type === "accepted");
    expect(accepted?.inputTokens).toBeLessThan(512);
    expect(accepted?.inputTokens).toBeGreaterThan(34);
  });

  test("an upper bound beyond the context is no error; the answer ends there", async () => {
    const long = chat(`Repeat for ever: ${"tea ".repeat(440)}`, {
      sampling: { temperature: 0, logitBias: { 0: -100, 2: -100 } },
      output: short(100_000),
    });
    const { events } = await run(backend, long);
    expect(events.at(-2)).toMatchObject({ type: "finish", finishReason: "length" });
    const usage = events.find((event) => event.type === "usage")?.usage;
    expect((usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)).toBe(512);
  });

  test.each([
    [
      "images",
      chat("", {
        input: {
          kind: "items",
          items: [{ type: "message", role: "user", content: [{ type: "image", url: "data:image/png;base64,AA==" }] }],
        },
      }),
      { code: "unsupported-capability", details: { capability: "vision" } },
    ],
    [
      "a suffix",
      chat("", { input: { kind: "completion", prompt: "a", suffix: "b", raw: true } }),
      { code: "unsupported-capability", details: { capability: "insert" } },
    ],
    [
      "an empty prompt",
      chat("", { input: { kind: "completion", prompt: "", raw: true } }),
      { code: "invalid-request", details: { param: "input" } },
    ],
    [
      "typical_p",
      chat("x", { sampling: { typicalP: 0.5 } }),
      { code: "invalid-request", details: { param: "sampling.typical_p" } },
    ],
    ["an unknown model", chat("x", { model: "none" }), { code: "model-not-found", details: { model: "none" } }],
    [
      "chat with an embedding model",
      chat("x", { model: "all-minilm-l6-v2" }),
      { code: "unsupported-capability", details: { capability: "chat" } },
    ],
  ])("%s is refused", async (_name, request, expected) => {
    expect(await failure(backend.respond(request, () => undefined, never))).toMatchObject(expected);
  });

  test("a sink that throws ends the work", async () => {
    const sink = (batch: readonly BackendEvent[]) => {
      if (batch.some((event) => event.type === "text")) throw new RangeError("log is full");
    };
    await expect(backend.respond(chat("Tell me a story."), sink, never)).rejects.toThrow("log is full");
  });

  test("abort rejects with the signal's reason, in the prompt and while decoding", async () => {
    const abortAt = async (when: (event: BackendEvent) => boolean, text: string) => {
      const controller = new AbortController();
      let abortedAt = 0;
      const sink = (batch: readonly BackendEvent[]) => {
        if (controller.signal.aborted || !batch.some(when)) return;
        abortedAt = performance.now();
        controller.abort(new CoreError("cancelled", "gone"));
      };
      const request = chat(text, { sampling: { temperature: 0, logitBias: { 0: -100, 2: -100 } } });
      expect(await failure(backend.respond(request, sink, controller.signal))).toMatchObject({ code: "cancelled" });
      return Math.round(performance.now() - abortedAt);
    };
    const inPrompt = await abortAt(
      (event) => event.type === "progress" && event.progress.kind === "prompt",
      "word ".repeat(400),
    );
    const decoding = await abortAt((event) => event.type === "text", "Tell me a story.");
    process.stdout.write(`abort in a prompt ${inPrompt} ms, while decoding ${decoding} ms\n`);
  });

  test("embeddings: length 1, alike texts near, exact counts, cut and refused", async () => {
    const embed = (changes: object) =>
      backend.embed({ model: "all-minilm-l6-v2", inputs: [], ...embedding, ...changes }, never);
    const { vectors, inputTokens } = await embed({
      inputs: ["A cat sits on the mat.", "A kitten lies on the rug.", "Stock prices fell today."],
    });
    const cosine = (a: number, b: number) =>
      vectors[a]?.reduce((sum, value, index) => sum + value * (vectors[b]?.[index] ?? 0), 0) ?? 0;
    for (const index of [0, 1, 2]) expect(cosine(index, index)).toBeCloseTo(1, 5);
    expect(cosine(0, 1)).toBeGreaterThan(cosine(0, 2) + 0.3);
    expect(inputTokens).toBe(9 + 9 + 7);
    const empty = await embed({ inputs: ["", [101, 102]] });
    expect(empty.inputTokens).toBe(4);
    const small = await embed({ inputs: ["A cat sits on the mat."], dimensions: 64 });
    expect(small.vectors[0]).toHaveLength(64);
    expect(Math.hypot(...(small.vectors[0] ?? []))).toBeCloseTo(1, 5);
    expect(await failure(embed({ inputs: ["x"], dimensions: 500 }))).toMatchObject({
      code: "invalid-request",
      details: { param: "dimensions", limit: 384 },
    });
    expect(await failure(embed({ inputs: ["ok", "word ".repeat(600)] }))).toMatchObject({
      code: "context-length-exceeded",
      details: { limit: 512, requested: 602 },
    });
    expect((await embed({ inputs: ["word ".repeat(600)], truncate: true })).inputTokens).toBe(512);
    expect(await failure(embed({ inputs: [[99_999]] }))).toMatchObject({ code: "invalid-request" });
    expect(await failure(embed({ model: "smollm2:135m", inputs: ["x"] }))).toMatchObject({
      code: "unsupported-capability",
      details: { capability: "embeddings" },
    });
  });

  test("embeddings are aborted between two inputs", async () => {
    const controller = new AbortController();
    const inputs = Array.from({ length: 500 }, (_, index) => `text number ${index} ${"word ".repeat(50)}`);
    const call = backend.embed({ model: "all-minilm-l6-v2", inputs, ...embedding }, controller.signal);
    const startedAt = performance.now();
    setImmediate(() => controller.abort(new Error("enough")));
    await expect(call).rejects.toThrow("enough");
    process.stdout.write(`abort of embeddings ${(performance.now() - startedAt).toFixed(0)} ms\n`);
  });

  test("kill -9 in the middle: a clear error at once, and the next answer comes", async () => {
    const pid = backend.processes().find((one) => one.model === "smollm2:135m")?.pid ?? 0;
    let killedAt = 0;
    const sink = (batch: readonly BackendEvent[]) => {
      if (killedAt > 0 || !batch.some((event) => event.type === "text")) return;
      killedAt = performance.now();
      process.kill(pid, "SIGKILL");
    };
    const error = await failure(backend.respond(chat("Tell me a story."), sink, never));
    const lostMs = performance.now() - killedAt;
    expect(error).toMatchObject({ code: "backend-unavailable", details: { model: "smollm2:135m" } });
    expect(error.message).toContain("SIGKILL");
    const { text } = await run(backend, chat("Name three colours.", { output: short(8) }));
    expect(text).toMatch(/^1\. Red:/);
    process.stdout.write(
      `killed: known after ${lostMs.toFixed(0)} ms, next answer after ${(performance.now() - killedAt).toFixed(0)} ms\n`,
    );
  });

  test("keep-alive: shown while idle, 0 unloads, -1 never", async () => {
    const model = () => backend.models().find((one) => one.name === "smollm2:135m");
    await run(backend, chat("Hi", { output: short(1), keepAliveMs: -1 }));
    expect(model()).toMatchObject({ state: "loaded" });
    expect(model()?.expiresAtMs).toBeUndefined();
    await run(backend, chat("Hi", { output: short(1), keepAliveMs: 60_000 }));
    expect(model()?.expiresAtMs).toBeGreaterThan(Date.now() + 50_000);
    await run(backend, chat("Hi", { output: short(1), keepAliveMs: 0 }));
    await changed(backend, () => model()?.state === "available");
    expect(backend.processes().some((one) => one.model === "smollm2:135m")).toBe(false);
  });

  test("unload waits for the running answer; load and abort of a load", async () => {
    let unloading: Promise<void> | undefined;
    const events: BackendEvent[] = [];
    const sink = (batch: readonly BackendEvent[]) => {
      events.push(...batch);
      if (batch.some((event) => event.type === "accepted")) unloading = backend.unload("smollm2:135m");
    };
    await backend.respond(chat("Count to five.", { output: short(10) }), sink, never);
    expect(events.at(-1)).toMatchObject({ type: "usage" });
    await unloading;
    expect(stateOf("smollm2:135m")).toBe("available");
    const controller = new AbortController();
    const load = backend.load("smollm2:135m", {}, controller.signal);
    controller.abort(new Error("not any more"));
    await expect(load).rejects.toThrow("not any more");
    await backend.load("smollm2:135m", {}, never);
    expect(stateOf("smollm2:135m")).toBe("loaded");
  });
});

describe.skipIf(missingModels !== undefined)("beside a running answer", { timeout: timeoutMs }, () => {
  const forever = { output: { format: { type: "text" } }, sampling: { logitBias: { 0: -100, 2: -100 } } } as const;

  test("an unload does not hold up who comes next; a signal to the group does not end the engine", async () => {
    const backend = createEmbeddedBackend({ paths: [chatModelFile()], contextTokens: 2_048 });
    await backend.ready;
    const abort = new AbortController();
    let pieces = 0;
    const long = backend.respond(
      chat("Write.", forever),
      (events) => {
        pieces += events.length;
      },
      abort.signal,
    );
    await expect.poll(() => pieces, { timeout: 60_000 }).toBeGreaterThan(2);
    const unloaded = backend.unload("smollm2:135m");
    const pid = backend.processes()[0]?.pid ?? 0;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(pid, signal);
    const next = await run(backend, chat("Hi", { output: short(3) }));
    expect(next.text.length).toBeGreaterThan(0);
    expect(backend.processes()[0]?.pid).toBe(pid);
    abort.abort(new Error("enough"));
    await expect(long).rejects.toThrow("enough");
    await unloaded;
    await backend.close();
  });
});

describe.skipIf(missingModels !== undefined)("sampling", { timeout: timeoutMs }, () => {
  test("a door's defaults hold for what the request leaves out, and only for that", async () => {
    const backend = createEmbeddedBackend({ paths: [chatModelFile()], contextTokens: 512 });
    const asked = chat("Count from one to ten.", { output: short(24), samplingDefaults: { repeatPenalty: 1.5 } });
    const explicit = chat("Count from one to ten.", {
      output: short(24),
      sampling: { temperature: 0, repeatPenalty: 1.5 },
    });
    const plain = chat("Count from one to ten.", { output: short(24) });
    const none = { ...asked, sampling: { temperature: 0, repeatPenalty: 1 } };
    const [defaulted, said, unset, overridden] = [
      await run(backend, asked),
      await run(backend, explicit),
      await run(backend, plain),
      await run(backend, none),
    ];
    expect(defaulted?.text).toBe(said?.text);
    expect(overridden?.text).toBe(unset?.text);
    expect(defaulted?.text).not.toBe(unset?.text);
    await backend.close();
  });
});

describe.skipIf(missingModels !== undefined)("embedded backend with bad files", { timeout: timeoutMs }, () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-embedded-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("corrupt, cut off and missing files are unavailable with a sentence, and asking for them fails clearly", async () => {
    const whole = await readFile(chatModelFile());
    await writeFile(join(folder, "corrupt-1b.gguf"), "this is no model");
    await writeFile(join(folder, "cut-1b.gguf"), whole);
    await truncate(join(folder, "cut-1b.gguf"), whole.length - 1_000_000);
    const backend = createEmbeddedBackend({ paths: [folder, join(folder, "missing-1b.gguf")] });
    await backend.ready;
    const details = Object.fromEntries(backend.models().map((model) => [model.name, model.stateDetail]));
    expect(backend.models().every((model) => model.state === "unavailable")).toBe(true);
    expect(details).toEqual({
      "corrupt:1b": "corrupt-1b.gguf is no GGUF file. Fetch it again or remove it.",
      "cut:1b": expect.stringMatching(/cut-1b.gguf is cut off: it has 97362432 of 98362432 bytes/),
      "missing:1b": expect.stringContaining("missing-1b.gguf is missing"),
    });
    const error = await failure(backend.respond(chat("x", { model: "cut:1b" }), () => undefined, never));
    expect(error).toMatchObject({ code: "backend-error", details: { model: "cut:1b" } });
    await writeFile(join(folder, "cut-1b.gguf"), whole);
    await backend.rescan();
    expect(backend.models().find((model) => model.name === "cut:1b")?.state).toBe("available");
    await backend.close();
  });

  test("a file whose damage only the engine sees fails its load and is unavailable then", async () => {
    const damaged = await readFile(chatModelFile());
    damaged.write("nonsens", damaged.indexOf("llama", 30), "latin1");
    const path = join(folder, "damaged-1b.gguf");
    await writeFile(path, damaged);
    const backend = createEmbeddedBackend({ paths: [path] });
    await backend.ready;
    const error = await failure(backend.respond(chat("x", { model: "damaged:1b" }), () => undefined, never));
    expect(error.message).toContain("damaged-1b.gguf");
    expect(backend.models()[0]).toMatchObject({ state: "unavailable", stateDetail: error.message });
    await backend.close();
  });

  test("an engine that never gets ready is given up", async () => {
    const engineEntry = new URL("./testing/slow-engine.ts", import.meta.url);
    const backend = createEmbeddedBackend({ paths: [chatModelFile()], loadTimeoutMs: 300 }, { engineEntry });
    const error = await failure(backend.respond(chat("x"), () => undefined, never));
    expect(error).toMatchObject({ code: "model-loading", details: { model: "smollm2:135m" } });
    expect(backend.processes()).toEqual([]);
    await backend.close();
  });

  test("too little memory is said before an engine is started", async () => {
    const backend = createEmbeddedBackend({ paths: [chatModelFile()], memoryLimit: 100e6 });
    const error = await failure(backend.respond(chat("x"), () => undefined, never));
    expect(error).toMatchObject({ code: "insufficient-memory" });
    expect(error.details.requested).toBeGreaterThan(error.details.limit ?? 0);
    expect(backend.models()[0]?.limits.contextTokens).toBe(256);
    await backend.close();
  });

  test("digests are remembered in the cache folder", async () => {
    const cacheFolder = join(folder, "cache");
    const open = async () => {
      const backend = createEmbeddedBackend({ paths: [embeddingModelFile()], cacheFolder });
      await backend.ready;
      await changed(backend, () => backend.models()[0]?.details.digest !== undefined);
      await backend.close();
    };
    await open();
    expect(await readFile(join(cacheFolder, "gguf-digests.json"), "utf8")).toContain("all-minilm-l6-v2-f16.gguf");
    await open();
  });
});
