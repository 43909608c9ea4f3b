import { describe, expect, it } from "vitest";
import type { Caller } from "../auth/principal.ts";
import { MemoryLeases } from "../memory/leases.ts";
import { createMemoryStorage } from "../memory/storage.ts";
import { MemoryTaskStore } from "../memory/task-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { BatchLine, TaskEvent } from "../ports/task-store.ts";
import { CoreError } from "../problems/core-error.ts";
import { type ResponseRequest, requestDefaults } from "../request/request.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedBackend, scriptedModel, textAnswer } from "../testing/scripted-backend.ts";
import { createTestCore, testCaller } from "../testing/test-core.ts";
import { type BatchInput, type BatchOutput, createBatchExecutor } from "./batch.ts";
import type { TaskContext, TaskExecutor } from "./executor.ts";
import type { TaskReader } from "./task-reader.ts";

const principal = testCaller.principal;
const other: Caller = { principal: { id: "bob", scopes: new Set(["read", "infer"]) }, fairnessKey: "principal:bob" };

const request: ResponseRequest = {
  ...requestDefaults,
  model: "m",
  input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }] },
};

/** An executor in the hands of the test. */
class Pull implements TaskExecutor {
  readonly kind = "model.pull";
  readonly concurrency: number;
  readonly runs: {
    readonly id: string;
    readonly context: TaskContext;
    end(result: unknown): void;
    fail(error: unknown): void;
  }[] = [];

  constructor(concurrency = 2) {
    this.concurrency = concurrency;
  }

  run({ id }: { readonly id: string }, context: TaskContext): Promise<unknown> {
    return new Promise((end, fail) => {
      this.runs.push({ id, context, end, fail });
      context.signal.addEventListener("abort", () => fail(context.signal.reason));
    });
  }
}

function sharedStorage(changes: Partial<Storage> = {}): Storage {
  const limits = { bytesPerResponse: 8_388_608, bytesTotal: 268_435_456 };
  return { ...createMemoryStorage(limits), isDurable: true, ...changes };
}

function start(storage = sharedStorage(), pull = new Pull()) {
  const clock = new ManualClock();
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  const core = createTestCore({ backends: [backend], clock, storage, leases: new MemoryLeases() });
  core.tasks.register(pull);
  return { clock, backend, core, pull, tasks: core.tasks };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
};

async function readAll(reader: TaskReader | undefined): Promise<TaskEvent[]> {
  const all: TaskEvent[] = [];
  for (let events = await reader?.next(); events !== undefined; events = await reader?.next()) all.push(...events);
  return all;
}

const told = (events: readonly TaskEvent[]): unknown[] =>
  events.map(({ sequence, type, task }) => [sequence, type, task.state, task.progress?.done]);

describe("tasks", () => {
  it("runs as many of a kind at once as it may, in order, and keeps each end", async () => {
    const { tasks, pull } = start();
    const created = await Promise.all([1, 2, 3].map((n) => tasks.create("model.pull", { source: `${n}` }, testCaller)));
    await settle();
    expect(pull.runs.map(({ id }) => id)).toEqual(created.slice(0, 2).map(({ id }) => id));
    pull.runs[1]?.end({ model: "two" });
    pull.runs[0]?.fail(new CoreError("insufficient-storage", "No room."));
    await settle();
    expect(pull.runs).toHaveLength(3);
    const [first, second, third] = await Promise.all(created.map(({ id }) => tasks.get(id, principal)));
    expect(first).toMatchObject({
      state: "failed",
      problem: { code: "insufficient-storage" },
      request: { source: "1" },
    });
    expect(second).toMatchObject({ state: "succeeded", result: { model: "two" }, attempt: 1 });
    expect(third).toMatchObject({ state: "running" });
    expect(second?.finishedAt).toBeDefined();
  });

  it("tells progress at most four times a second, the last word always, numbered without a gap", async () => {
    const { tasks, pull, clock } = start();
    const { id } = await tasks.create("model.pull", {}, testCaller);
    const reading = readAll(await tasks.events(id, 0, principal));
    await settle();
    const { context, end } = pull.runs[0] ?? expect.unreachable();
    for (let ms = 0; ms < 1_000; ms += 10) {
      context.progress({ done: ms, total: 1_000, unit: "bytes" });
      clock.advance(10);
      await settle();
    }
    context.progress({ done: 1_000, total: 1_000, unit: "bytes" });
    end(undefined);
    await settle();
    const events = await reading;
    expect(told(events)).toEqual([
      [1, "task.progress", "running", undefined],
      [2, "task.progress", "running", 0],
      [3, "task.progress", "running", 240],
      [4, "task.progress", "running", 490],
      [5, "task.progress", "running", 740],
      [6, "task.progress", "running", 990],
      [7, "task.succeeded", "succeeded", 1_000],
    ]);
    expect(told(await readAll(await tasks.events(id, 5, principal)))).toEqual(told(events).slice(5));
    expect(await tasks.events(id, 7, principal)).toBeUndefined();
    expect(await tasks.events(id, 99, principal)).toBeUndefined();
  });

  it("cancels in any state, once", async () => {
    const { tasks, pull } = start(sharedStorage(), new Pull(1));
    const running = await tasks.create("model.pull", {}, testCaller);
    const waiting = await tasks.create("model.pull", {}, testCaller);
    await settle();
    const reading = readAll(await tasks.events(waiting.id, 0, principal));
    expect(await tasks.cancel(waiting.id, principal)).toMatchObject({
      state: "cancelled",
      problem: { code: "cancelled" },
    });
    expect(told(await reading)).toEqual([[1, "task.cancelled", "cancelled", undefined]]);
    await tasks.cancel(running.id, principal);
    await settle();
    expect(await tasks.get(running.id, principal)).toMatchObject({ state: "cancelled" });
    expect((await tasks.cancel(running.id, principal)).finishedAt).toBeDefined();
    expect(pull.runs).toHaveLength(1);
    expect(tasks.active).toBe(0);
  });

  it("goes on after a crash: waiting ones wait, running ones run again, cancelled and worn ones end", async () => {
    const storage = sharedStorage();
    const first = start(storage, new Pull(1));
    const running = await first.tasks.create("model.pull", {}, testCaller);
    const waiting = await first.tasks.create("model.pull", {}, testCaller);
    const cancelled = await first.tasks.create("model.pull", {}, testCaller);
    await settle();
    first.pull.runs[0]?.context.progress({ done: 5, unit: "bytes" });
    await settle();
    await storage.tasks.requestCancel(cancelled.id, "requested");
    const before = await storage.tasks.events(running.id, 0);

    const second = start(storage);
    await second.core.recover();
    await settle();
    expect(second.pull.runs.map(({ id, context }) => [id, context.isRestart])).toEqual([
      [running.id, true],
      [waiting.id, false],
    ]);
    expect(await second.tasks.get(cancelled.id, principal)).toMatchObject({ state: "cancelled" });
    expect(await second.tasks.get(running.id, principal)).toMatchObject({ state: "running", attempt: 2 });
    expect(await second.tasks.get(waiting.id, principal)).toMatchObject({ state: "running", attempt: 1 });
    const after = await storage.tasks.events(running.id, 0);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.map(({ sequence }) => sequence)).toEqual(after.map((_event, index) => index + 1));

    for (let attempt = 3; attempt <= 3; attempt += 1) await start(storage).core.recover();
    await settle();
    const last = start(storage);
    await last.core.recover();
    await settle();
    expect(await last.tasks.get(running.id, principal)).toMatchObject({
      state: "failed",
      attempt: 3,
      problem: { code: "interrupted" },
    });
    expect(await last.tasks.get(waiting.id, principal)).toMatchObject({ state: "running", attempt: 3 });
  });

  it("costs no attempt to stop in good order", async () => {
    const storage = sharedStorage();
    const first = start(storage);
    const { id } = await first.tasks.create("model.pull", {}, testCaller);
    await settle();
    await first.core.close(1_000);
    expect(await storage.tasks.get(id)).toMatchObject({ state: "queued" });
    await expect(first.tasks.create("model.pull", {}, testCaller)).rejects.toMatchObject({ code: "draining" });
    const second = start(storage);
    await second.core.recover();
    await settle();
    expect(second.pull.runs.map(({ context }) => context.isRestart)).toEqual([true]);
    expect(await second.tasks.get(id, principal)).toMatchObject({ state: "running", attempt: 1 });
  });

  it("keeps its one result also when the disk has no room at first", async () => {
    let isFull = false;
    const store = new (class extends MemoryTaskStore {
      override async appendEvent(event: TaskEvent): Promise<void> {
        if (isFull) throw new Error("ENOSPC");
        await super.appendEvent(event);
      }
    })();
    const { tasks, pull, clock } = start(sharedStorage({ tasks: store }));
    const { id } = await tasks.create("model.pull", {}, testCaller);
    await settle();
    isFull = true;
    pull.runs[0]?.end("done");
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({ state: "running" });
    isFull = false;
    clock.advance(1_000);
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({ state: "succeeded", result: "done" });
  });

  it("refuses what it can't keep and kinds that it doesn't offer; shows nobody what is another's", async () => {
    const full = start(sharedStorage({ writeFault: "The disk is full." }));
    await expect(full.tasks.create("model.pull", {}, testCaller)).rejects.toMatchObject({
      code: "insufficient-storage",
    });
    const { tasks } = start();
    await expect(tasks.create("model.load", {}, testCaller)).rejects.toMatchObject({ code: "unsupported-operation" });
    const { id } = await tasks.create("model.pull", {}, testCaller);
    for (const call of [
      tasks.get(id, other.principal),
      tasks.cancel(id, other.principal),
      tasks.delete(id, other.principal),
      tasks.events(id, 0, other.principal),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "not-found" });
    }
    await expect(tasks.events(id, 5, principal)).rejects.toMatchObject({ code: "invalid-request" });
    expect((await tasks.list({ limit: 10 }, other.principal)).data).toEqual([]);
  });

  it("forgets an ended task after its retention, and a deleted one at once; readers end", async () => {
    const { tasks, pull, clock } = start();
    const { id } = await tasks.create("model.pull", {}, testCaller);
    const deleted = await tasks.create("model.pull", {}, testCaller);
    await settle();
    pull.runs[0]?.end(undefined);
    await settle();
    const reading = readAll(await tasks.events(deleted.id, 0, principal));
    await tasks.delete(deleted.id, principal);
    await settle();
    expect(pull.runs[1]?.context.signal.aborted).toBe(true);
    await reading;
    await expect(tasks.get(deleted.id, principal)).rejects.toMatchObject({ code: "not-found" });
    clock.advance(3_600_000 + 60_000);
    await settle();
    await expect(tasks.get(id, principal)).rejects.toMatchObject({ code: "not-found" });
  });

  it("lists background responses among them, in pages", async () => {
    const { tasks, core, clock, pull } = start();
    const ids: string[] = [];
    for (let index = 0; index < 6; index += 1) {
      clock.advance(1);
      if (index % 2 === 0) ids.unshift((await tasks.create("model.pull", {}, testCaller)).id);
      else ids.unshift((await core.responses.create({ ...request, background: true }, testCaller, "lmsp")).id);
      await (await core.responses.create(request, testCaller, "lmsp")).done;
    }
    await settle();
    pull.runs[0]?.end(undefined);
    await settle();
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await tasks.list({ limit: 2, ...(cursor === undefined ? {} : { cursor }) }, principal);
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(ids);
    const done = await tasks.list({ limit: 10, state: "succeeded" }, principal);
    expect(done.data.map(({ kind }) => kind).sort()).toEqual(["model.pull", "response", "response", "response"]);
    expect((await tasks.list({ limit: 10, kind: "response" }, principal)).data).toHaveLength(3);
    expect(await tasks.get(ids[0] ?? "", principal)).toMatchObject({ kind: "response", state: "succeeded" });
  });
});

describe("batches", () => {
  const say = (text: string, changes: Partial<ResponseRequest> = {}): BatchInput => ({
    customId: text,
    request: {
      ...request,
      input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text }] }] },
      ...changes,
    },
  });
  const toLine = (output: BatchOutput): string => JSON.stringify(output);

  function startBatch(storage = sharedStorage(), parallel = 2) {
    const parts = start(storage);
    const { core, clock, backend } = parts;
    core.tasks.register(
      createBatchExecutor({ responses: core.responses, store: storage.tasks, clock, toLine, parallel }),
    );
    backend.answer = (asked, signal) => {
      const [item] = asked.input.kind === "items" ? asked.input.items : [];
      const text = item?.type === "message" && item.content[0]?.type === "text" ? item.content[0].text : "";
      if (text.startsWith("stuck")) {
        return (async function* () {
          yield [{ type: "accepted" } as const];
          await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        })();
      }
      if (text === "fails") throw new CoreError("backend-error", "It failed.");
      return textAnswer([text.toUpperCase()])(asked, signal);
    };
    return parts;
  }

  const shown = (lines: readonly BatchLine[]): unknown[] =>
    lines.map(({ text }) => {
      const line = JSON.parse(text);
      return [line.index, line.customId, line.problem?.code ?? line.response.output[0].text];
    });

  it("answers each line in order, bad ones with their problem, behind whoever waits", async () => {
    const { tasks, backend, core } = startBatch();
    const lines: BatchInput[] = [
      say("a"),
      { customId: "bad", problem: { code: "invalid-json", detail: "No JSON.", details: {} } },
      say("fails"),
      say("b", { priority: 2 }),
      say("c", { model: "unknown" }),
    ];
    const { id } = await tasks.create("batch", { lines, priority: -4 }, testCaller);
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({
      state: "succeeded",
      progress: { done: 5, total: 5, unit: "items" },
      result: { lines: 5, failed: 3 },
    });
    expect(shown(await tasks.output(id, 0, 100, principal))).toEqual([
      [0, "a", "A"],
      [1, "bad", "invalid-json"],
      [2, "fails", "backend-error"],
      [3, "b", "B"],
      [4, "c", "model-not-found"],
    ]);
    expect(backend.requests.map(({ priority }) => priority)).toEqual([-4, -4, 2]);
    expect(core.responses.active).toBe(0);
  });

  it("gives the lines that are done, and after a crash runs only the others", async () => {
    const storage = sharedStorage();
    const first = startBatch(storage);
    const lines = [say("a"), say("stuck 1"), say("b"), say("c"), say("stuck 2"), say("d")];
    const { id } = await first.tasks.create("batch", { lines, priority: -4 }, testCaller);
    await settle();
    expect(await first.tasks.get(id, principal)).toMatchObject({ state: "running" });
    expect(shown(await first.tasks.output(id, 0, 100, principal))).toEqual([[0, "a", "A"]]);
    const second = startBatch(storage);
    const { answer } = second.backend;
    second.backend.answer = (asked, signal) => answer({ ...asked, input: unstuck(asked.input) }, signal);
    await second.core.recover();
    await settle();
    expect(second.backend.requests).toHaveLength(3);
    expect(shown(await second.tasks.output(id, 0, 100, principal)).map((line) => (line as unknown[])[2])).toEqual([
      "A",
      "1",
      "B",
      "C",
      "2",
      "D",
    ]);
    expect(await second.tasks.get(id, principal)).toMatchObject({ state: "succeeded", attempt: 2 });
  });

  it("stops its lines when it is cancelled and keeps what they had answered", async () => {
    const { tasks, backend } = startBatch();
    const { id } = await tasks.create(
      "batch",
      { lines: [say("a"), say("stuck"), say("stuck")], priority: -4 },
      testCaller,
    );
    await settle();
    await tasks.cancel(id, principal);
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({ state: "cancelled" });
    expect(backend.running).toBe(0);
    expect(shown(await tasks.output(id, 0, 100, principal))).toEqual([[0, "a", "A"]]);
  });

  it("leaves unfinished lines to the next start when the service stops in good order", async () => {
    const storage = sharedStorage();
    const first = startBatch(storage);
    const { id } = await first.tasks.create("batch", { lines: [say("stuck"), say("a")], priority: -4 }, testCaller);
    await settle();
    await first.core.close(0);
    expect(await storage.tasks.finishedLines(id)).toEqual(new Set([1]));
    expect(await storage.tasks.get(id)).toMatchObject({ state: "queued" });
  });

  it("waits while the service is full", async () => {
    const { tasks, core, clock } = startBatch();
    const create = core.responses.create.bind(core.responses);
    let isFull = true;
    core.responses.create = (...parts) =>
      isFull ? Promise.reject(new CoreError("overloaded", "Full.", { retryAfterMs: 2_000 })) : create(...parts);
    const { id } = await tasks.create("batch", { lines: [say("a")], priority: -4 }, testCaller);
    await settle();
    isFull = false;
    clock.advance(1_999);
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({ state: "running" });
    clock.advance(1);
    await settle();
    expect(await tasks.get(id, principal)).toMatchObject({ state: "succeeded", result: { lines: 1, failed: 0 } });
  });

  it("is refused where no text is kept", async () => {
    const { tasks } = startBatch(sharedStorage({ keepsContent: false }));
    const refused = tasks.create("batch", { lines: [say("a")], priority: -4 }, testCaller);
    await expect(refused).rejects.toMatchObject({ code: "unsupported-capability" });
  });
});

function unstuck(input: ResponseRequest["input"]): ResponseRequest["input"] {
  return JSON.parse(JSON.stringify(input).replace("stuck ", ""));
}
