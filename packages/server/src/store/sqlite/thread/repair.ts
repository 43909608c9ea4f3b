import { existsSync, renameSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { RepairReport } from "../repair.ts";
import { type Database, faultOf, once, openDatabase, openPlain } from "./database.ts";
import { tables } from "./migrations.ts";

function repair(file: string): RepairReport {
  requireFree(file);
  const movedTo = moveAside(file);
  const target = openDatabase(file, 0);
  const salvaged: Record<string, number> = {};
  let isComplete = true;
  try {
    const source = openDamaged(movedTo);
    // Rows whose other half is lost are taken out at the end.
    target.exec("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
    for (const table of tables) {
      const { rows, isWhole } = source === undefined ? { rows: 0, isWhole: false } : copyTable(source, target, table);
      salvaged[table] = rows;
      isComplete &&= isWhole;
    }
    removeOrphans(target);
    target.exec("COMMIT");
    source?.close();
  } finally {
    target.close();
  }
  return { movedTo, salvaged, isComplete };
}

/** A service that runs would go on writing to the file under its new name. */
function requireFree(file: string): void {
  if (!existsSync(file)) throw new Error(`There is no database ${file}.`);
  try {
    const database = openPlain(file, { readOnly: true });
    once(database, "SELECT count(*) FROM sqlite_schema");
    database.close();
  } catch (error) {
    if (faultOf(error) !== "in-use") return;
    throw new Error(`The database ${file} is in use: stop the service that has it first.`);
  }
}

function moveAside(file: string): string {
  const stamp = new Date().toISOString().replace(/[:.]/g, "-");
  const movedTo = `${file}.damaged-${stamp}`;
  renameSync(file, movedTo);
  for (const suffix of ["-wal", "-shm"]) {
    if (existsSync(file + suffix)) renameSync(file + suffix, movedTo + suffix);
  }
  return movedTo;
}

function openDamaged(file: string): Database | undefined {
  try {
    const database = openPlain(file);
    once(database, "SELECT count(*) FROM sqlite_schema");
    return database;
  } catch {
    return undefined;
  }
}

/** Reads from the beginning until something can't be read, then from the end back to there. */
function copyTable(source: Database, target: Database, table: string): { rows: number; isWhole: boolean } {
  const columns = columnsOf(target, table);
  const names = columns.join(", ");
  const insert = target.prepare(`INSERT OR IGNORE INTO ${table} (${names}) VALUES (${columns.map(() => "?")})`);
  const copyInOrder = (order: string): boolean => {
    const select = prepare(source, `SELECT ${names} FROM ${table} ${order}`);
    try {
      for (const row of (select?.iterate() ?? []) as Iterable<Readonly<Record<string, string | number | null>>>) {
        insert.run(...columns.map((column) => row[column] ?? null));
      }
      return select !== undefined;
    } catch {
      return false;
    }
  };
  const isWhole = copyInOrder("");
  // The first column leads the order in which a table lies on disk.
  if (!isWhole) copyInOrder(`ORDER BY ${columns[0]} DESC`);
  return { rows: Number(once(target, `SELECT count(*) FROM ${table}`)), isWhole };
}

function prepare(database: Database, sql: string): ReturnType<Database["prepare"]> | undefined {
  try {
    return database.prepare(sql);
  } catch {
    return undefined;
  }
}

function columnsOf(database: Database, table: string): string[] {
  return String(once(database, `SELECT group_concat(name) FROM pragma_table_info('${table}')`)).split(",");
}

function removeOrphans(target: Database): void {
  target.exec(`
    DELETE FROM events WHERE log NOT IN (SELECT key FROM logs);
    DELETE FROM task_events WHERE task NOT IN (SELECT place FROM tasks);
    DELETE FROM task_lines WHERE task NOT IN (SELECT place FROM tasks);
  `);
}

// A thread of its own: what is prepared here holds the file until the thread ends.
parentPort?.postMessage(repair(String(workerData)));
