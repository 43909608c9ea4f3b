import { describe, expect, it } from "vitest";
import type { ResponseEvent } from "../events/response-events.ts";
import { MemoryLeases } from "../memory/leases.ts";
import { createMemoryStorage } from "../memory/storage.ts";
import { MemoryStore } from "../memory/store.ts";
import type { LogReader } from "../ports/event-log.ts";
import type { Storage } from "../ports/storage.ts";
import type { ResponseRecord } from "../ports/store.ts";
import { type ResponseRequest, requestDefaults } from "../request/request.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { type ScriptedAnswer, ScriptedBackend, scriptedModel, textAnswer } from "../testing/scripted-backend.ts";
import { createTestCore, testCaller } from "../testing/test-core.ts";

/** A memory that is taken over by a second core as a disk is by a second process. */
class SharedStore extends MemoryStore {
  readonly #ids = new Set<string>();

  override async put(record: ResponseRecord): Promise<void> {
    this.#ids.add(record.response.id);
    await super.put(record);
  }

  override async unfinished(): Promise<readonly ResponseRecord[]> {
    const records = await Promise.all([...this.#ids].map((id) => this.get(id)));
    return records.filter(
      (record) => record !== undefined && record.response.finishedAt === undefined,
    ) as ResponseRecord[];
  }
}

function sharedStorage(): Storage {
  const limits = { bytesPerResponse: 8_388_608, bytesTotal: 268_435_456 };
  return { ...createMemoryStorage(limits), responses: new SharedStore(), isDurable: true };
}

const request: ResponseRequest = {
  ...requestDefaults,
  model: "m",
  input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }] },
};
const background: ResponseRequest = { ...request, background: true };

/** Says some, then nothing, until it is aborted. */
const stuck: ScriptedAnswer = async function* (_request, signal) {
  yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "old " }];
  yield [{ type: "text", candidate: 0, delta: "text" }];
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};

const principal = testCaller.principal;

function start(storage: Storage, options: { readonly answer?: ScriptedAnswer; readonly parallel?: number } = {}) {
  const clock = new ManualClock();
  const model = scriptedModel("m", { limits: { contextTokens: 100, parallel: options.parallel ?? 4 } });
  const backend = new ScriptedBackend("b", [model]);
  backend.answer = options.answer ?? textAnswer(["new ", "text"]);
  const core = createTestCore({
    backends: [backend],
    clock,
    storage,
    leases: new MemoryLeases(),
    limits: { queued: 2 },
  });
  return { clock, backend, core, responses: core.responses };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
};

function take(reader: LogReader | undefined): { readonly sequence: number; readonly event: ResponseEvent }[] {
  return reader?.take().map(({ sequence, event }) => ({ sequence, event })) ?? [];
}

const typesOf = (events: readonly { readonly event: ResponseEvent }[]): string[] =>
  events.map(({ event }) => event.type);

describe("after a stop of the process", () => {
  it("runs an interrupted background response again, its log in one piece, with one result", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const { id, done } = await first.responses.create(background, testCaller, "lmsp");
    await settle();
    const seen = take(await first.responses.events(id, 0, principal));
    expect(typesOf(seen).at(-1)).toBe("response.output_text.delta");

    const second = start(storage);
    await second.core.recover();
    await settle();
    const all = take(await second.responses.events(id, 0, principal));
    expect(all.slice(0, seen.length)).toEqual(seen);
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_entry, index) => index + 1));
    expect(all[seen.length]?.event).toMatchObject({ type: "response.restarted", attempt: 2 });
    const { response } = await second.responses.get(id, principal);
    expect(response).toMatchObject({ status: "completed", attempt: 2, output: [{ text: "new text", index: 0 }] });
    expect(all.at(-1)?.event).toMatchObject({ type: "response.completed", response: { id } });
    // The process that lost it can write no more.
    void done.catch(() => {});
    expect(() => first.core.responses.drain(0)).not.toThrow();
    await settle();
    expect(take(await second.responses.events(id, 0, principal))).toEqual(all);
    expect(await second.responses.events(id, all.length, principal)).toBeUndefined();
  });

  it("queues waiting ones again in their order, more than the queue would take anew, and keeps deadline and priority", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck, parallel: 1 });
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1) {
      const owned = await first.responses.create(
        { ...background, metadata: { index: String(index) } },
        testCaller,
        "lmsp",
      );
      ids.push(owned.id);
    }
    await settle();
    const late = { ...background, deadlineMs: first.clock.now() + 5_000, priority: 3 };
    // Beyond this core's queue of 2: put there by an earlier process with a longer one.
    const [record] = await storage.responses.unfinished();
    const deadlineMs = late.deadlineMs;
    if (record === undefined) return expect.unreachable();
    const lateRecord = {
      ...record,
      request: late,
      response: { ...record.response, id: "resp_late", status: "queued" as const, priority: 3, deadlineMs },
    };
    await storage.responses.put(lateRecord);

    const second = start(storage, { parallel: 1, answer: stuck });
    await second.core.recover();
    await settle();
    expect(second.backend.requests.map(({ metadata }) => metadata["index"])).toEqual(["0"]);
    expect((await second.responses.get("resp_late", principal)).response).toMatchObject({
      status: "queued",
      priority: 3,
    });
    second.clock.advance(6_000);
    await settle();
    const { response } = await second.responses.get("resp_late", principal);
    expect(response).toMatchObject({ status: "failed", problem: { code: "deadline-exceeded" }, attempt: 1 });
    second.backend.answer = textAnswer(["done"]);
    await second.responses.cancel(ids[0] ?? "", principal);
    await settle();
    expect(second.backend.requests.map(({ metadata }) => metadata["index"])).toEqual(["0", "1", "2"]);
    expect((await second.responses.get(ids[2] ?? "", principal)).response).toMatchObject({
      status: "completed",
      attempt: 1,
    });
  });

  it("ends a cancelled one as cancelled and one that has had its attempts as interrupted", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const cancelled = await first.responses.create(background, testCaller, "lmsp");
    const worn = await first.responses.create(background, testCaller, "lmsp");
    await settle();
    await storage.responses.requestCancel(cancelled.id, "requested");
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      const next = start(storage, { answer: stuck });
      await next.core.recover();
      await settle();
      expect((await next.responses.get(worn.id, principal)).response).toMatchObject({ status: "in_progress", attempt });
      expect((await next.responses.get(cancelled.id, principal)).response).toMatchObject({ status: "cancelled" });
    }
    const last = start(storage);
    await last.core.recover();
    await settle();
    const { response } = await last.responses.get(worn.id, principal);
    expect(response).toMatchObject({ status: "failed", attempt: 3, problem: { code: "interrupted" } });
    expect(last.backend.requests).toEqual([]);
  });

  it("ends foreground responses as interrupted, with what they had said, and tells readers that were ahead", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const { id } = await first.responses.create({ ...request, store: true }, testCaller, "lmsp");
    await settle();
    const second = start(storage);
    await second.core.recover();
    await settle();
    const all = take(await second.responses.events(id, 0, principal));
    expect(typesOf(all).slice(-3)).toEqual([
      "response.output_text.done",
      "response.output_item.done",
      "response.failed",
    ]);
    const { response } = await second.responses.get(id, principal);
    expect(response).toMatchObject({ status: "failed", problem: { code: "interrupted" }, usage: { outputTokens: 2 } });
    expect(response.output).toMatchObject([{ text: "old text", status: "incomplete" }]);
    expect(await second.responses.events(id, all.length, principal)).toBeUndefined();
    const beyond = take(await second.responses.events(id, all.length + 7, principal));
    expect(typesOf(beyond)).toEqual(["response.failed"]);
    expect(second.backend.requests).toEqual([]);
  });

  it("takes an end that only the log has", async () => {
    const storage = sharedStorage();
    const first = start(storage);
    const { id, done } = await first.responses.create(background, testCaller, "lmsp");
    await done;
    await settle();
    const record = await storage.responses.get(id);
    if (record === undefined) return expect.unreachable();
    await storage.responses.put({ ...record, response: { ...record.response, status: "in_progress" } });
    const unfinished = { ...record.response, status: "in_progress" as const };
    const { finishedAt: _finishedAt, ...running } = unfinished;
    await storage.responses.put({ ...record, response: running });
    const second = start(storage);
    await second.core.recover();
    expect((await second.responses.get(id, principal)).response).toEqual(record.response);
    expect(second.backend.requests).toEqual([]);
  });

  it("gives a log the end that only the record has", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const { id } = await first.responses.create({ ...request, store: true }, testCaller, "lmsp");
    await settle();
    const record = await storage.responses.get(id);
    if (record === undefined) return expect.unreachable();
    const response = { ...record.response, status: "completed" as const, finishedAt: record.response.createdAt + 5 };
    await storage.responses.put({ ...record, response });
    const second = start(storage);
    await second.core.recover();
    const all = take(await second.responses.events(id, 0, principal));
    expect(all.at(-1)?.event).toEqual({ type: "response.completed", atMs: 5, response });
    expect(take(await second.responses.events(id, 0, principal))).toEqual(all);
  });

  it("leaves background responses to the next start when the service stops in good order", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck, parallel: 1 });
    const running = await first.responses.create(background, testCaller, "lmsp");
    const waiting = await first.responses.create(background, testCaller, "lmsp");
    await settle();
    const drained = first.core.close(1_000);
    await settle();
    first.clock.advance(1_000);
    await drained;
    const second = start(storage);
    await second.core.recover();
    await settle();
    expect((await second.responses.get(running.id, principal)).response).toMatchObject({
      status: "completed",
      attempt: 2,
    });
    expect((await second.responses.get(waiting.id, principal)).response).toMatchObject({
      status: "completed",
      attempt: 1,
    });
  });

  it("stops in good order as often as it likes without using up the attempts", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const { id } = await first.responses.create(background, testCaller, "lmsp");
    await settle();
    let service = first;
    for (let stop = 0; stop < 5; stop += 1) {
      const drained = service.core.close(1_000);
      await settle();
      service.clock.advance(1_000);
      await drained;
      expect((await storage.responses.get(id))?.response).toMatchObject({ status: "queued", attempt: stop + 2 });
      service = start(storage, { answer: stop === 4 ? textAnswer(["done"]) : stuck });
      await service.core.recover();
      await settle();
    }
    expect((await service.responses.get(id, principal)).response).toMatchObject({ status: "completed", attempt: 6 });
    const all = take(await service.responses.events(id, 0, principal));
    expect(typesOf(all).filter((type) => type === "response.restarted")).toHaveLength(5);
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_entry, index) => index + 1));
  });

  it("waits for a runtime that comes back later than the service", async () => {
    const storage = sharedStorage();
    const first = start(storage, { answer: stuck });
    const { id } = await first.responses.create(background, testCaller, "lmsp");
    await settle();
    const second = start(storage);
    const models = second.backend.models();
    second.backend.setModels([]);
    await second.core.recover();
    await settle();
    expect((await second.responses.get(id, principal)).response.status).toBe("queued");
    second.backend.setModels(models);
    await settle();
    expect((await second.responses.get(id, principal)).response.status).toBe("completed");
  });
});

describe("background responses", () => {
  it("are refused where nothing can be kept, with the reason", async () => {
    const full = start({ ...sharedStorage(), writeFault: "The disk is full." });
    const refused = full.responses.create(background, testCaller, "lmsp");
    await expect(refused).rejects.toMatchObject({ code: "insufficient-storage" });
    const silent = start({ ...sharedStorage(), keepsContent: false });
    const textless = silent.responses.create(background, testCaller, "lmsp");
    await expect(textless).rejects.toMatchObject({ code: "unsupported-capability", details: { param: "background" } });
  });

  it("are on disk before they are accepted, and not accepted when they can't be", async () => {
    const storage = sharedStorage();
    let isFull = true;
    const responses = new (class extends SharedStore {
      override async put(record: ResponseRecord): Promise<void> {
        if (isFull) throw new Error("ENOSPC");
        await super.put(record);
      }
    })();
    const { responses: api, backend } = start({ ...storage, responses });
    await expect(api.create(background, testCaller, "lmsp")).rejects.toThrow("ENOSPC");
    isFull = false;
    const { id } = await api.create(background, testCaller, "lmsp");
    expect((await responses.get(id))?.request).toMatchObject({ background: true, store: true });
    expect(backend.requests.length).toBeGreaterThan(0);
  });

  it("go on without any connection or reader", async () => {
    const { responses, clock } = start(sharedStorage(), { answer: stuck });
    const owned = await responses.create({ ...background, onDisconnect: "cancel" }, testCaller, "lmsp");
    owned.ownerLeft();
    clock.advance(600_000);
    await settle();
    expect((await responses.get(owned.id, principal)).response.status).toBe("in_progress");
  });
});
