import { existsSync, renameSync } from "node:fs";
import { type Database, openDatabase, openPlain } from "./thread/database.ts";
import { tables } from "./thread/migrations.ts";

export interface RepairReport {
  /** Where the damaged file is now, as it was. */
  readonly movedTo: string;
  /** Rows that could be read, by table. */
  readonly salvaged: Readonly<Record<string, number>>;
  /** False: something could not be read and is lost. */
  readonly isComplete: boolean;
}

/**
 * Makes a new database of what can be read of a damaged one, which is moved aside and never deleted.
 * @param file of a service that does not run.
 * @throws Error when it can't be moved, or the new one can't be written.
 */
export function repairSqlite(file: string): RepairReport {
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
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
    return database;
  } catch {
    return undefined;
  }
}

/** Reads from the beginning until something can't be read, then from the end back to there. */
function copyTable(source: Database, target: Database, table: string): { rows: number; isWhole: boolean } {
  const copied = new Set<string>();
  const copyInOrder = (order: string): boolean => {
    try {
      const columns = columnsOf(target, table);
      const marks = columns.map(() => "?").join(", ");
      const insert = target.prepare(`INSERT OR IGNORE INTO ${table} (${columns.join(", ")}) VALUES (${marks})`);
      const select = source.prepare(`SELECT ${columns.join(", ")} FROM ${table} ${order}`);
      for (const row of select.iterate() as Iterable<Readonly<Record<string, string | number | null>>>) {
        const values = columns.map((column) => row[column] ?? null);
        if (insert.run(...values).changes > 0) copied.add(JSON.stringify(values.slice(0, 3)));
      }
      return true;
    } catch {
      return false;
    }
  };
  const isWhole = copyInOrder("");
  if (!isWhole) copyInOrder(`ORDER BY ${columnsOf(target, table)[0]} DESC`);
  return { rows: copied.size, isWhole };
}

function columnsOf(database: Database, table: string): string[] {
  const rows = database.prepare(`SELECT name FROM pragma_table_info(?)`).all(table) as { readonly name: string }[];
  return rows.map(({ name }) => name);
}

function removeOrphans(target: Database): void {
  target.exec(`
    DELETE FROM events WHERE log NOT IN (SELECT key FROM logs);
    DELETE FROM task_events WHERE task NOT IN (SELECT place FROM tasks);
    DELETE FROM task_lines WHERE task NOT IN (SELECT place FROM tasks);
  `);
}
