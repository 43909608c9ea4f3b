import { describe, expect, it } from "vitest";
import type { IdempotencyRecord, IdempotencyStore } from "./idempotency-store.ts";

const record = (key: string, id: string, expiresAt = 100): IdempotencyRecord => {
  return { key, bodySha256: "0".repeat(64), id, expiresAt };
};

/** What every store of idempotency keys does alike. */
export function testIdempotencyStore(name: string, create: () => Promise<IdempotencyStore>): void {
  describe(`idempotency store: ${name}`, () => {
    it("gives a key to the first, and tells the others who has it", async () => {
      const store = await create();
      const claims = await Promise.all(["a", "b", "c"].map((id) => store.claim(record("k", id), 0)));
      expect(claims).toEqual([undefined, record("k", "a"), record("k", "a")]);
      expect(await store.claim(record("other", "d"), 0)).toBeUndefined();
    });

    it("frees a key when it is released or has expired", async () => {
      const store = await create();
      await store.claim(record("k", "a"), 0);
      await store.release("k", "another");
      expect(await store.claim(record("k", "b"), 0)).toEqual(record("k", "a"));
      await store.release("k", "a");
      expect(await store.claim(record("k", "b"), 0)).toBeUndefined();
      expect(await store.claim(record("k", "c", 200), 99)).toEqual(record("k", "b"));
      expect(await store.claim(record("k", "c", 200), 100)).toBeUndefined();
    });

    it("sweeps expired keys only", async () => {
      const store = await create();
      await store.claim(record("old", "a", 10), 0);
      await store.claim(record("new", "b", 20), 0);
      await store.sweep(15);
      expect(await store.claim(record("old", "c"), 0)).toBeUndefined();
      expect(await store.claim(record("new", "c"), 0)).toEqual(record("new", "b", 20));
    });
  });
}
