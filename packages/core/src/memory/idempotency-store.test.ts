import { testIdempotencyStore } from "../ports/idempotency-store.suite.ts";
import { MemoryIdempotencyStore } from "./idempotency-store.ts";

testIdempotencyStore("memory", async () => new MemoryIdempotencyStore());
