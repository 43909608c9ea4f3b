import { describe, expect, it } from "vitest";
import type { EmbeddingRequest } from "../request/request.ts";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { createTestCore, testCaller } from "../testing/test-core.ts";

const request: EmbeddingRequest = { model: "e", inputs: ["a", "b"], truncate: false, priority: 0, runtimeOptions: {} };

function setUp() {
  const model = scriptedModel("m");
  const embedding = scriptedModel("e", {
    capabilities: { ...model.capabilities, chat: false, embeddings: true },
    limits: { parallel: 1 },
  });
  const backend = new ScriptedBackend("b", [model, embedding]);
  return { backend, core: createTestCore({ backends: [backend] }) };
}

describe("embeddings", () => {
  const never = new AbortController().signal;

  it("gives one vector for each input", async () => {
    const { core } = setUp();
    const result = await core.embeddings.create(request, testCaller, "openai", never);
    expect(result).toMatchObject({ model: "e", inputTokens: 4 });
    expect(result.vectors).toHaveLength(2);
  });

  it.each([
    ["an unknown model", { model: "nope" }, "model-not-found"],
    ["a chat model", { model: "m" }, "unsupported-capability"],
    ["nothing to embed", { inputs: [] }, "invalid-request"],
    ["dimensions of 0", { dimensions: 0 }, "invalid-request"],
  ])("refuses %s", async (_name, changes, code) => {
    const { core } = setUp();
    await expect(core.embeddings.create({ ...request, ...changes }, testCaller, "openai", never)).rejects.toMatchObject(
      { code },
    );
  });

  it("leaves the queue and the backend when aborted, and the lane stays free", async () => {
    const { core, backend } = setUp();
    let begun = 0;
    backend.embed = (_request, signal) => {
      begun += 1;
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const running = new AbortController();
    const queued = new AbortController();
    const first = core.embeddings.create(request, testCaller, "openai", running.signal);
    const second = core.embeddings.create(request, testCaller, "openai", queued.signal);
    await expect.poll(() => begun).toBe(1);
    queued.abort();
    await expect(second).rejects.toMatchObject({ code: "cancelled" });
    running.abort();
    await expect(first).rejects.toMatchObject({ code: "cancelled" });
    await expect.poll(() => core.scheduler.running).toBe(0);
    expect(core.scheduler.queued).toBe(0);
    expect(begun).toBe(1);
  });

  it("what was aborted or has no time left never reaches a backend", async () => {
    const { core, backend } = setUp();
    const aborted = core.embeddings.create(request, testCaller, "openai", AbortSignal.abort());
    await expect(aborted).rejects.toMatchObject({ code: "cancelled" });
    const late = core.embeddings.create({ ...request, deadlineMs: 1 }, testCaller, "openai", never);
    await expect(late).rejects.toMatchObject({ code: "deadline-exceeded" });
    expect(backend.embeddingRequests).toHaveLength(0);
  });

  it("lets running ones end when the core closes, within the limit", async () => {
    const { core, backend } = setUp();
    backend.embed = async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { vectors: [Float32Array.of(1)], inputTokens: 1, loadMs: 0 };
    };
    const running = core.embeddings.create(request, testCaller, "openai", never);
    await expect.poll(() => core.scheduler.running).toBe(1);
    await core.close(5_000);
    expect((await running).inputTokens).toBe(1);
    const stuck = setUp();
    stuck.backend.embed = (_request, signal) =>
      new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
    const cut = stuck.core.embeddings.create(request, testCaller, "openai", never);
    cut.catch(() => {});
    await expect.poll(() => stuck.core.scheduler.running).toBe(1);
    await stuck.core.close(20);
    await expect(cut).rejects.toMatchObject({ code: "interrupted" });
  });
});
