import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, vi } from "vitest";
import { openSqliteStorage, type SqliteStorage, type SqliteStorageOptions } from "../index.ts";
import { limits } from "./fixtures-data.ts";

export interface Storages {
  /** A file in a folder of its own. */
  file(): Promise<string>;
  open(options?: Partial<SqliteStorageOptions>): Promise<SqliteStorage>;
}

/** Storages of one test file, closed and deleted after it. */
export function storages(): Storages {
  const folders: string[] = [];
  const opened: SqliteStorage[] = [];
  vi.setConfig({ testTimeout: 120_000 });
  afterAll(async () => {
    await Promise.all(opened.map((storage) => storage.close()));
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
  });
  const file = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "plenum-store-"));
    folders.push(folder);
    return join(folder, "plenum.db");
  };
  return {
    file,
    async open(options = {}) {
      const storage = await openSqliteStorage({ ...limits, ...options, file: options.file ?? (await file()) });
      opened.push(storage);
      return storage;
    },
  };
}
