import { describe, expect, it } from "vitest";
import type { TaskEvent, TaskRecord, TaskStore } from "./task-store.ts";

function task(id: string, changes: Partial<TaskRecord> = {}): TaskRecord {
  return {
    id,
    kind: "batch",
    owner: "ann",
    fairnessKey: "principal:ann",
    request: { requests: [{ model: "m" }] },
    state: "queued",
    attempt: 1,
    createdAt: 1,
    ...changes,
  };
}

function event(sequence: number, record: TaskRecord): TaskEvent {
  const type = record.state === "succeeded" ? "task.succeeded" : "task.progress";
  return { sequence, type, atMs: sequence * 10, task: record };
}

/** What every store of tasks does alike. */
export function testTaskStore(name: string, create: () => Promise<TaskStore>): void {
  describe(`task store: ${name}`, () => {
    it("keeps, replaces and deletes, with every member", async () => {
      const store = await create();
      await store.put(task("task_a"));
      const done = task("task_a", {
        state: "failed",
        progress: { done: 3, total: 10, unit: "bytes", step: "downloading" },
        result: { file: "a\u0000b😀" },
        problem: { code: "insufficient-storage", detail: "Full.", details: { limit: 5 } },
        attempt: 2,
        startedAt: 2,
        finishedAt: 3,
      });
      await store.put(done);
      expect(await store.get("task_a")).toEqual(done);
      expect(await store.head("task_a")).toEqual(done);
      const large = task("task_b", { request: { requests: "x".repeat(100_000) } });
      await store.put(large);
      expect(await store.get("task_b")).toEqual(large);
      expect(await store.head("task_b")).toMatchObject({ id: "task_b", state: "queued" });
      await store.delete("task_a");
      expect(await store.get("task_a")).toBeUndefined();
      expect(await store.get("task_unknown")).toBeUndefined();
    });

    it("lists newest first, in pages, filtered; a page's place stands when its last task is gone", async () => {
      const store = await create();
      for (let index = 0; index < 5; index += 1) {
        await store.put(
          task(`task_${index}`, {
            createdAt: index,
            kind: index % 2 === 0 ? "batch" : "model.pull",
            owner: index < 4 ? "ann" : "bob",
            state: index === 0 ? "running" : "queued",
          }),
        );
      }
      const ids = (records: readonly TaskRecord[]): string[] => records.map(({ id }) => id);
      const first = await store.list({ limit: 2 });
      expect(ids(first.data)).toEqual(["task_4", "task_3"]);
      await store.delete("task_3");
      const second = await store.list({ limit: 2, cursor: first.nextCursor ?? "" });
      expect(ids(second.data)).toEqual(["task_2", "task_1"]);
      const third = await store.list({ limit: 2, cursor: second.nextCursor ?? "" });
      expect(ids(third.data)).toEqual(["task_0"]);
      expect(third.nextCursor).toBeUndefined();
      expect(ids((await store.list({ limit: 10, owner: "bob" })).data)).toEqual(["task_4"]);
      expect(ids((await store.list({ limit: 10, kind: "model.pull" })).data)).toEqual(["task_1"]);
      expect(ids((await store.list({ limit: 10, state: "running" })).data)).toEqual(["task_0"]);
      await expect(store.list({ limit: 2, cursor: "task_2" })).rejects.toMatchObject({ code: "invalid-request" });
    });

    it("knows what is unfinished, oldest first", async () => {
      const store = await create();
      await store.put(task("task_a", { createdAt: 1, state: "running" }));
      await store.put(task("task_b", { createdAt: 2, state: "succeeded", finishedAt: 9 }));
      await store.put(task("task_c", { createdAt: 3 }));
      expect((await store.unfinished()).map(({ id }) => id)).toEqual(["task_a", "task_c"]);
    });

    it("keeps a cancel request over later changes and events; the first reason stays", async () => {
      const store = await create();
      await store.put(task("task_a"));
      expect(await store.requestCancel("task_a", "requested")).toBe(true);
      expect(await store.requestCancel("task_a", "superseded")).toBe(true);
      await store.put(task("task_a", { state: "running" }));
      expect(await store.get("task_a")).toMatchObject({ state: "running", cancelRequested: "requested" });
      await store.appendEvent(event(1, task("task_a", { state: "succeeded" })));
      expect(await store.get("task_a")).toMatchObject({ state: "succeeded", cancelRequested: "requested" });
      expect(await store.requestCancel("task_unknown", "requested")).toBe(false);
    });

    it("numbers events without a gap, and an event is the task's new state", async () => {
      const store = await create();
      await store.put(task("task_a"));
      const events = [1, 2, 3].map((done) =>
        event(done, task("task_a", { state: "running", progress: { done, unit: "items" } })),
      );
      for (const each of events) await store.appendEvent(each);
      expect(await store.events("task_a", 0)).toEqual(events);
      expect(await store.events("task_a", 2)).toEqual(events.slice(2));
      expect(await store.events("task_a", 3)).toEqual([]);
      expect((await store.get("task_a"))?.progress).toEqual({ done: 3, unit: "items" });
      await expect(store.appendEvent(event(3, task("task_a")))).rejects.toMatchObject({ code: "conflict" });
      await expect(store.appendEvent(event(5, task("task_a")))).rejects.toMatchObject({ code: "conflict" });
      await expect(store.appendEvent(event(1, task("task_b")))).rejects.toMatchObject({ code: "not-found" });
      expect((await store.get("task_a"))?.state).toBe("running");
    });

    it("keeps each line of a batch once and gives them back in order", async () => {
      const store = await create();
      await store.put(task("task_a"));
      for (const index of [2, 0, 3]) await store.putLine("task_a", { index, text: `{"index":${index}}` });
      await store.putLine("task_a", { index: 2, text: "another" });
      expect(await store.lines("task_a", 0, 10)).toEqual(
        [0, 2, 3].map((index) => ({ index, text: `{"index":${index}}` })),
      );
      expect((await store.lines("task_a", 1, 1)).map(({ index }) => index)).toEqual([2]);
      expect([...(await store.finishedLines("task_a"))].sort()).toEqual([0, 2, 3]);
      expect(await store.finishedLines("task_b")).toEqual(new Set());
      await expect(store.putLine("task_b", { index: 0, text: "" })).rejects.toMatchObject({ code: "not-found" });
      await store.delete("task_a");
      await store.put(task("task_a"));
      expect(await store.lines("task_a", 0, 10)).toEqual([]);
      expect(await store.events("task_a", 0)).toEqual([]);
    });

    it("sweeps what ended before an instant, and nothing else", async () => {
      const store = await create();
      await store.put(task("task_old", { state: "succeeded", finishedAt: 10 }));
      await store.put(task("task_new", { state: "failed", finishedAt: 20 }));
      await store.put(task("task_runs", { state: "running" }));
      expect(await store.sweep(20)).toEqual(["task_old"]);
      expect((await store.list({ limit: 10 })).data).toHaveLength(2);
    });
  });
}
