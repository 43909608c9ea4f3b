import { describe, expect, it } from "vitest";
import { requestDefaults } from "../request/request.ts";
import type { ResponseRecord, Store } from "./store.ts";

function record(id: string, changes: Partial<ResponseRecord["response"]> = {}, owner = "ann"): ResponseRecord {
  return {
    request: { ...requestDefaults, model: "m", input: { kind: "items", items: [] } },
    owner,
    fairnessKey: `principal:${owner}`,
    epoch: 1,
    response: {
      id,
      status: "queued",
      model: "m",
      door: "lmsp",
      output: [],
      finishes: [],
      timings: {},
      attempt: 1,
      priority: 0,
      createdAt: 0,
      metadata: {},
      ...changes,
    },
  };
}

/** What every store does alike. */
export function testStore(name: string, create: () => Promise<Store>): void {
  describe(`store: ${name}`, () => {
    it("keeps, replaces and deletes", async () => {
      const store = await create();
      await store.put(record("resp_a"));
      await store.put(record("resp_a", { status: "completed" }));
      expect((await store.get("resp_a"))?.response.status).toBe("completed");
      await store.delete("resp_a");
      expect(await store.get("resp_a")).toBeUndefined();
    });

    it("lists newest first, in pages, filtered", async () => {
      const store = await create();
      for (let index = 0; index < 5; index += 1) {
        await store.put(
          record(`resp_${index}`, { door: index % 2 === 0 ? "lmsp" : "ollama" }, index < 4 ? "ann" : "bob"),
        );
      }
      const first = await store.list({ limit: 2 });
      expect(first.data.map(({ response }) => response.id)).toEqual(["resp_4", "resp_3"]);
      const second = await store.list({ limit: 2, ...(first.nextCursor ? { cursor: first.nextCursor } : {}) });
      expect(second.data.map(({ response }) => response.id)).toEqual(["resp_2", "resp_1"]);
      expect((await store.list({ limit: 10, owner: "bob" })).data).toHaveLength(1);
      expect((await store.list({ limit: 10, door: "ollama" })).data).toHaveLength(2);
      expect((await store.list({ limit: 10, status: "failed" })).data).toHaveLength(0);
      expect((await store.list({ limit: 5 })).nextCursor).toBeUndefined();
    });

    it("goes on after a page whose last response is gone, and refuses a cursor of its own making", async () => {
      const store = await create();
      for (let index = 0; index < 4; index += 1) await store.put(record(`resp_${index}`, { createdAt: index }));
      const first = await store.list({ limit: 2 });
      await store.delete("resp_2");
      const second = await store.list({ limit: 2, cursor: first.nextCursor ?? "" });
      expect(second.data.map(({ response }) => response.id)).toEqual(["resp_1", "resp_0"]);
      await expect(store.list({ limit: 2, cursor: "resp_2" })).rejects.toMatchObject({ code: "invalid-request" });
    });

    it("keeps a cancel request over later changes; the first reason stays", async () => {
      const store = await create();
      await store.put(record("resp_a"));
      expect(await store.requestCancel("resp_a", "requested")).toBe(true);
      expect(await store.requestCancel("resp_a", "superseded")).toBe(true);
      await store.put(record("resp_a", { status: "in_progress" }));
      expect((await store.get("resp_a"))?.cancelRequested).toBe("requested");
      expect(await store.requestCancel("resp_unknown", "requested")).toBe(false);
    });
  });
}
