import {
  testEventLog,
  testIdempotencyStore,
  testSettingsStore,
  testStore,
  testTaskStore,
  testTokenStore,
} from "@plenum/core/testing";
import { storages } from "./testing/fixtures.ts";

const { open } = storages();

testStore("sqlite", async () => (await open()).responses);
testStore("sqlite without content", async () => (await open({ content: "never" })).responses);
testEventLog("sqlite", async (limits) => (await open(limits)).log);
testEventLog("sqlite, durable", async (limits) => (await open(limits)).log, { isDurable: true });
testTaskStore("sqlite", async () => (await open()).tasks);
testTokenStore("sqlite", async () => (await open()).tokens);
testIdempotencyStore("sqlite", async () => (await open()).idempotency);
testSettingsStore("sqlite", async () => (await open()).settings);
