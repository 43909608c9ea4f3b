import { type TaskProgress, type TaskRecord, toCoreError } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testCaller } from "@plenum/core/testing";
import { expect, test, vi } from "vitest";
import { createModelExecutors } from "./model-executors.ts";
import { ModelLibrary } from "./model-library.ts";
import { ModelPuller } from "./model-puller.ts";

function setUp() {
  const backend = Object.assign(new ScriptedBackend("one", [scriptedModel("m", { aliases: ["short"] })]), {
    kind: "ollama",
    pull: async (_name: string, onProgress: (progress: TaskProgress) => void) => onProgress({ done: 1, unit: "bytes" }),
  });
  const core = createTestCore({ backends: [backend] });
  const puller = new ModelPuller({
    library: new ModelLibrary("/nowhere", core.storage.settings),
    hub: { url: "http://127.0.0.1:1" },
    runtimes: () => core.catalog.backends,
    hasModel: () => false,
  });
  for (const executor of createModelExecutors(puller, core.models)) core.tasks.register(executor);
  const run = async (kind: "model.pull" | "model.load" | "model.unload", request: unknown): Promise<TaskRecord> => {
    const task = await core.tasks.create(kind, request, testCaller);
    const reader = await core.tasks.events(task.id, 0, testCaller.principal);
    while ((await reader?.next()) !== undefined);
    const ended = await core.storage.tasks.get(task.id);
    if (ended === undefined) throw new Error("the task is gone");
    return ended;
  };
  return { backend, core, run };
}

test("a pull by name goes to the runtime and tells its progress", async () => {
  const { run } = setUp();
  const task = await run("model.pull", { source: "ollama:llama3.2", more: 1 });
  expect(task).toMatchObject({
    state: "succeeded",
    request: { source: "ollama:llama3.2" },
    result: { models: ["llama3.2"] },
  });
  expect(task.request).toEqual({ source: "ollama:llama3.2" });
});

test("load and unload by any name, with the time that it stays", async () => {
  const { backend, run } = setUp();
  const [load, unload] = [vi.spyOn(backend, "load"), vi.spyOn(backend, "unload")];
  expect(await run("model.load", { model: "short", keep_alive: "1m" })).toMatchObject({
    state: "succeeded",
    request: { model: "m", keep_alive: 60_000 },
    result: { model: "m" },
  });
  expect(load).toHaveBeenCalledWith("m", { keepAliveMs: 60_000 }, expect.any(AbortSignal));
  expect(await run("model.unload", { model: "one/m" })).toMatchObject({ state: "succeeded", result: { model: "m" } });
  expect(unload).toHaveBeenCalledWith("m");
});

test("what the runtime refuses is the task's problem", async () => {
  const { backend, run } = setUp();
  vi.spyOn(backend, "load").mockRejectedValue(toCoreError(new Error("no")));
  expect(await run("model.load", { model: "m" })).toMatchObject({ state: "failed", problem: { code: "internal" } });
});

test.each([
  ["model.pull", {}, "source"],
  ["model.pull", { source: 1 }, "source"],
  ["model.pull", { source: "http://example.com/x.gguf" }, "source"],
  ["model.pull", { source: "starter", sha256: "x" }, "sha256"],
  ["model.load", {}, "model"],
  ["model.load", { model: "" }, "model"],
  ["model.load", { model: "m", keep_alive: "soon" }, "keep_alive"],
  ["model.load", { model: "m", keep_alive: -5 }, "keep_alive"],
  ["model.load", { model: "none" }, "model"],
  ["model.unload", { model: "none" }, "model"],
] as const)("%s %j is refused before it is accepted", async (kind, request, param) => {
  const { core } = setUp();
  await expect(core.tasks.create(kind, request, testCaller)).rejects.toMatchObject({ details: { param } });
  expect((await core.storage.tasks.list({ limit: 10 })).data).toEqual([]);
});
