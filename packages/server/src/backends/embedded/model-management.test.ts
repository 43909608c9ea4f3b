import { existsSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BackendEvent, type BackendRequest, requestDefaults } from "@plenum/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEmbeddedBackend, type EmbeddedBackend, type EmbeddedBackendOptions } from "./index.ts";
import { findModelFits } from "./model-fit.ts";
import { chatModelFile, embeddingModelFile, missingModels } from "./testing/model-files.ts";
import { splitGguf } from "./testing/split-gguf.ts";

const never = new AbortController().signal;

function chat(model: string, maxTokens = 4): BackendRequest {
  const items = [{ type: "message", role: "user", content: [{ type: "text", text: "Name three colours." }] }] as const;
  const output = { format: { type: "text" }, maxTokens } as const;
  return { ...requestDefaults, model, input: { kind: "items", items }, sampling: { temperature: 0 }, output };
}

async function answer(backend: EmbeddedBackend, model: string): Promise<string> {
  const events: BackendEvent[] = [];
  await backend.respond(chat(model), (batch) => events.push(...batch), never);
  return events.map(textOf).join("");
}

function textOf(event: BackendEvent): string {
  return event.type === "text" ? event.delta : "";
}

describe.skipIf(missingModels !== undefined)("models of the real engine", { timeout: 180_000 }, () => {
  let folder: string;
  let backend: EmbeddedBackend | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-models-"));
  });
  afterEach(async () => {
    await backend?.close();
    backend = undefined;
    await rm(folder, { recursive: true });
  });

  async function open(options: Partial<EmbeddedBackendOptions> = {}): Promise<EmbeddedBackend> {
    backend = createEmbeddedBackend({ paths: [folder], contextTokens: 512, parallel: 1, ...options });
    await backend.ready;
    return backend;
  }

  const stateOf = (name: string) => backend?.models().find((model) => model.name === name)?.state;
  const memoryOf = (name: string) => backend?.models().find((model) => model.name === name)?.memoryBytes ?? 0;

  test("an idle model makes room, one in use does not; what is estimated beside what is taken", async () => {
    await copyFile(chatModelFile(), join(folder, "one-1b.gguf"));
    await copyFile(chatModelFile(), join(folder, "two-1b.gguf"));
    // Room for one of them: files of 98 MB, a cache of 12 MB, and what the engine takes besides.
    const opened = await open({ memoryLimit: 500_000_000 });
    expect(await answer(opened, "one:1b")).not.toBe("");
    const taken = memoryOf("one:1b");
    await answer(opened, "two:1b");
    expect([stateOf("one:1b"), stateOf("two:1b")]).toEqual(["available", "loaded"]);
    let isRunning = (): void => {};
    const running = new Promise<void>((resolve) => {
      isRunning = resolve;
    });
    const abort = new AbortController();
    const long = opened.respond(
      chat("two:1b", 400),
      (events) => events.some(({ type }) => type === "text") && isRunning(),
      abort.signal,
    );
    await running;
    const refused = await opened.load("one:1b", {}, never).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "insufficient-memory", details: { model: "one:1b" } });
    const { limit, requested } = Object(refused).details;
    expect(requested).toBeGreaterThan(limit);
    expect(stateOf("two:1b")).toBe("loaded");
    abort.abort();
    await long.catch(() => undefined);
    await opened.load("one:1b", {}, never);
    expect([stateOf("one:1b"), stateOf("two:1b")]).toEqual(["loaded", "available"]);
    const megabytes = (bytes: number) => Math.round(bytes / 1e6);
    process.stdout.write(
      `measured: estimate ${megabytes(requested)} MB, child after an answer ${megabytes(taken)} MB\n`,
    );
  });

  test("the estimate with the whole context, four at once", async () => {
    const opened = await open({ paths: [chatModelFile()], contextTokens: 8_192, parallel: 4 });
    await answer(opened, "smollm2:135m");
    const taken = memoryOf("smollm2:135m");
    const [fit] = await findModelFits({ paths: [chatModelFile()], contextTokens: 8_192, parallel: 4 });
    const megabytes = (bytes = 0) => Math.round(bytes / 1e6);
    const { neededBytes = 0 } = fit ?? {};
    process.stdout.write(
      `measured: estimate ${megabytes(neededBytes)} MB, child ${megabytes(taken)} MB, 4 × 8192 tokens\n`,
    );
    expect(neededBytes).toBeGreaterThan(taken);
  });

  test("two that ask at once: the second waits for the first to load, then takes its place", async () => {
    await copyFile(chatModelFile(), join(folder, "one-1b.gguf"));
    await copyFile(chatModelFile(), join(folder, "two-1b.gguf"));
    const opened = await open({ memoryLimit: 500_000_000 });
    await Promise.all([opened.load("one:1b", {}, never), opened.load("two:1b", {}, never)]);
    expect([stateOf("one:1b"), stateOf("two:1b")].toSorted()).toEqual(["available", "loaded"]);
  });

  test("a model in parts is one model, answers as the whole does, and misses no part in silence", async () => {
    const parts = await splitGguf(chatModelFile(), join(folder, "parts-1b"), 3);
    const opened = await open();
    const [model] = opened.models();
    const whole = await readFile(chatModelFile());
    expect(opened.models()).toHaveLength(1);
    expect(model).toMatchObject({ name: "parts:1b", state: "available", details: { parameters: 134_515_008 } });
    expect(model?.details.sizeBytes).toBeGreaterThanOrEqual(whole.length);
    const text = await answer(opened, "parts:1b");
    await rm(parts[1] ?? "");
    await opened.rescan();
    expect(opened.models()[0]).toMatchObject({
      state: "unavailable",
      stateDetail: expect.stringContaining("parts-1b-00002-of-00003.gguf is missing"),
    });
    await opened.close();
    const single = await open({ paths: [chatModelFile()] });
    expect(await answer(single, "smollm2:135m")).toBe(text);
  });

  test("a model is deleted when nobody uses it, and only by who may", async () => {
    const path = join(folder, "one-1b.gguf");
    await copyFile(chatModelFile(), path);
    const opened = await open({ removeModel: (file) => rm(file) });
    let isRunning = (): void => {};
    const running = new Promise<void>((resolve) => {
      isRunning = resolve;
    });
    const abort = new AbortController();
    const long = opened.respond(
      chat("one:1b", 400),
      (events) => events.some(({ type }) => type === "text") && isRunning(),
      abort.signal,
    );
    await running;
    await expect(opened.delete?.("one:1b")).rejects.toMatchObject({ code: "conflict" });
    abort.abort();
    await long.catch(() => undefined);
    await opened.delete?.("one:1b");
    expect(existsSync(path)).toBe(false);
    expect(opened.models()).toEqual([]);
    await expect(opened.delete?.("one:1b")).rejects.toMatchObject({ code: "model-not-found" });
    const fixed = createEmbeddedBackend({ paths: [embeddingModelFile()] });
    expect(fixed.delete).toBeUndefined();
    await fixed.close();
  });

  test("further files come and go with each look", async () => {
    let further: readonly string[] = [];
    const opened = await open({ furtherPaths: () => further });
    expect(opened.models()).toEqual([]);
    further = [chatModelFile()];
    await opened.rescan();
    expect(opened.namesOf(further)).toEqual(["smollm2:135m"]);
    further = [];
    await opened.rescan();
    expect(opened.models()).toEqual([]);
  });
});
