export { openSqliteStorage, type SqliteStorage, type SqliteStorageOptions } from "./open-storage.ts";
export { type RepairReport, repairSqlite } from "./repair.ts";
export { StorageRefusal } from "./storage-refusal.ts";
