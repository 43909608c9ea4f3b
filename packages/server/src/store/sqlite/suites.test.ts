import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  testEventLog,
  testIdempotencyStore,
  testSettingsStore,
  testStore,
  testTaskStore,
  testTokenStore,
} from "@plenum/core/testing";
import { afterAll, beforeAll } from "vitest";
import { openSqliteStorage, type SqliteStorage, type SqliteStorageOptions } from "./index.ts";

const folders: string[] = [];
const open: SqliteStorage[] = [];

async function create(options: Partial<SqliteStorageOptions> = {}): Promise<SqliteStorage> {
  const folder = await mkdtemp(join(tmpdir(), "plenum-store-"));
  folders.push(folder);
  const limits = { bytesPerResponse: 1_000_000, bytesTotal: 10_000_000 };
  const storage = await openSqliteStorage({ file: join(folder, "plenum.db"), ...limits, ...options });
  open.push(storage);
  return storage;
}

afterAll(async () => {
  await Promise.all(open.map((storage) => storage.close()));
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
});

testStore("sqlite", async () => (await create()).responses);
testStore("sqlite without content", async () => (await create({ content: "never" })).responses);
testTaskStore("sqlite", async () => (await create()).tasks);
testTokenStore("sqlite", async () => (await create()).tokens);
testIdempotencyStore("sqlite", async () => (await create()).idempotency);
testSettingsStore("sqlite", async () => (await create()).settings);
