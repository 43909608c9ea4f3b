import { expect, it } from "vitest";
import { testQuotaStore } from "../ports/quota-store.suite.ts";
import { MemoryQuotaStore } from "./quota-store.ts";

testQuotaStore(() => new MemoryQuotaStore());

it("forgets keys that nobody uses", async () => {
  const store = new MemoryQuotaStore();
  await store.take({ key: "gone", requestsPerMinute: 1 }, 0);
  await store.end("gone", 1, 10);
  await store.take({ key: "runs", requestsPerMinute: 1 }, 0);
  await store.take({ key: "new", requestsPerMinute: 1 }, 200_000);
  expect(store.size).toBe(2);
});
