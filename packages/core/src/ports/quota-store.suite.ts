import { describe, expect, it } from "vitest";
import type { QuotaStore } from "./quota-store.ts";

/** What every QuotaStore has to do. */
export function testQuotaStore(create: () => QuotaStore | Promise<QuotaStore>): void {
  /** Not at the start of a step or second, so that roundings show. */
  const start = 1_700_000_000_037;

  describe("QuotaStore", () => {
    it("accepts as many requests as the limit in any 60 s, and says when there is room", async () => {
      const store = await create();
      const quota = { key: "k", requestsPerMinute: 3 };
      for (const atMs of [0, 10_000, 50_000]) expect(await store.take(quota, start + atMs)).toBeUndefined();
      const refusal = await store.take(quota, start + 51_000);
      expect(refusal).toMatchObject({ limit: "requests", most: 3 });
      const retryAfterMs = refusal?.retryAfterMs ?? 0;
      expect(retryAfterMs).toBeGreaterThanOrEqual(9_000);
      expect(retryAfterMs).toBeLessThanOrEqual(9_200);
      expect(await store.take(quota, start + 51_000 + retryAfterMs)).toBeUndefined();
      // The window slides: the next one leaves it 10 s later.
      expect(await store.take(quota, start + 61_000)).toMatchObject({ limit: "requests" });
      expect(await store.take(quota, start + 70_200)).toBeUndefined();
    });

    it("never accepts more than the limit in any 60 s, however they come", async () => {
      const store = await create();
      const quota = { key: "k", requestsPerMinute: 7 };
      const accepted: number[] = [];
      for (let atMs = start; atMs < start + 300_000; atMs += 733) {
        if ((await store.take(quota, atMs)) === undefined) accepted.push(atMs);
      }
      for (const first of accepted) {
        expect(accepted.filter((atMs) => atMs >= first && atMs < first + 60_000).length).toBeLessThanOrEqual(7);
      }
      expect(accepted.length).toBeGreaterThanOrEqual(4 * 7);
    });

    it("counts tokens when their work ends", async () => {
      const store = await create();
      const quota = { key: "k", tokensPerMinute: 100 };
      expect(await store.take(quota, start)).toBeUndefined();
      await store.end("k", 99, start);
      expect(await store.take(quota, start + 1_000)).toBeUndefined();
      await store.end("k", 500, start + 1_000);
      const refusal = await store.take(quota, start + 2_000);
      expect(refusal).toMatchObject({ limit: "tokens", most: 100 });
      expect(await store.take(quota, start + 2_000 + (refusal?.retryAfterMs ?? 0))).toBeUndefined();
    });

    it("bounds what runs at once; an end makes room", async () => {
      const store = await create();
      const quota = { key: "k", concurrency: 2 };
      expect(await store.take(quota, start)).toBeUndefined();
      expect(await store.take(quota, start)).toBeUndefined();
      expect(await store.take(quota, start)).toEqual({ limit: "concurrency", most: 2 });
      await store.end("k", 0, start);
      expect(await store.take(quota, start)).toBeUndefined();
    });

    it("a refused request and one that is given back count nothing", async () => {
      const store = await create();
      const quota = { key: "k", requestsPerMinute: 2, concurrency: 1 };
      expect(await store.take(quota, start)).toBeUndefined();
      for (let more = 0; more < 5; more += 1) expect(await store.take(quota, start)).toMatchObject({ most: 1 });
      await store.end("k", 0, start + 5);
      expect(await store.take(quota, start + 10)).toBeUndefined();
      await store.giveBack("k", start + 10);
      expect(await store.take(quota, start + 20)).toBeUndefined();
      await store.end("k", 0, start + 30);
      expect(await store.take(quota, start + 40)).toMatchObject({ limit: "requests" });
    });

    it("keys count by themselves, and requests at one moment are taken in one step", async () => {
      const store = await create();
      const takes = Array.from({ length: 20 }, () => store.take({ key: "a", requestsPerMinute: 5 }, start));
      expect((await Promise.all(takes)).filter((refusal) => refusal === undefined)).toHaveLength(5);
      expect(await store.take({ key: "b", requestsPerMinute: 5 }, start)).toBeUndefined();
    });

    it("a limit of none is never met", async () => {
      const store = await create();
      for (const quota of [{ requestsPerMinute: 0 }, { tokensPerMinute: 0 }, { concurrency: 0 }]) {
        expect(await store.take({ key: "k", ...quota }, start)).toMatchObject({ most: 0 });
      }
    });
  });
}
