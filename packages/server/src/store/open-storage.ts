import { createMemoryStorage, type Storage } from "@plenum/core";
import type { Logger } from "pino";
import type { Config } from "../config/index.ts";
import { openSqliteStorage } from "./sqlite/index.ts";

/**
 * Opens what the configuration names.
 * @throws StorageRefusal when the database is in use, damaged, made by a newer version, or can't be written.
 */
export async function openStorage({ store, limits }: Config, logger: Logger): Promise<Storage> {
  const logLimits = { bytesPerResponse: limits.logBytesPerResponse, bytesTotal: limits.logBytesTotal };
  if (store.kind === "memory") return createMemoryStorage(logLimits);
  return openSqliteStorage({
    ...logLimits,
    file: store.path,
    maxBytes: store.maxBytes,
    content: store.content,
    responseRetentionMs: limits.eventRetentionMs,
    taskRetentionMs: store.taskRetentionMs,
    onFault(fault) {
      if (fault === undefined) logger.info({ file: store.path }, "the database can be written again");
      else logger.error({ file: store.path, cause: fault }, "the database can't be written");
    },
  });
}
