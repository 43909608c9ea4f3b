import { pragma, type Statements } from "./database.ts";

/** Part of the cap from which the oldest ended things go, and down to which they go. */
const high = 0.9;
const low = 0.8;
/** Responses and tasks that go at a time: few, since one may be large. */
const evictedAtOnce = 4;
/** Pages given back to the file system at a time. */
const vacuumPages = 2000;

/**
 * Deletes the ended responses and tasks that are oldest.
 * @returns their ids; none: everything that is left still runs.
 */
export function evictOldest(statements: Statements): string[] {
  const oldest = statements.all<{ id: string }>(
    `SELECT id FROM (SELECT id, ended_at FROM responses WHERE ended_at IS NOT NULL
      UNION ALL SELECT id, ended_at FROM tasks WHERE ended_at IS NOT NULL) ORDER BY ended_at LIMIT ?`,
    evictedAtOnce,
  );
  for (const { id } of oldest) {
    for (const table of ["responses", "logs", "tasks"]) statements.run(`DELETE FROM ${table} WHERE id = ?`, id);
  }
  return oldest.map(({ id }) => id);
}

export function upkeepOperations(statements: Statements, maxBytes: number) {
  const { database } = statements;
  const usedBytes = (): number =>
    (pragma(database, "page_count") - pragma(database, "freelist_count")) * pragma(database, "page_size");
  return {
    /** Moves what retention counts from by as much as the clock jumped forward; nothing ends in the future. */
    "upkeep.clock"({ now, jumpedMs }: { readonly now: number; readonly jumpedMs: number }): void {
      for (const table of ["responses", "logs", "tasks"]) {
        const sql = `UPDATE ${table} SET ended_at = min(ended_at + ?1, ?2) WHERE ended_at + ?1 > ?2 OR (?1 > 0 AND ended_at IS NOT NULL)`;
        statements.run(sql, jumpedMs, now);
      }
    },
    /** Keeps the database below its cap. @returns the ids that went. */
    "upkeep.size"(): string[] {
      if (maxBytes === 0 || usedBytes() < maxBytes * high) return [];
      const gone: string[] = [];
      while (usedBytes() > maxBytes * low) {
        const evicted = evictOldest(statements);
        if (evicted.length === 0) break;
        gone.push(...evicted);
      }
      return gone;
    },
    "upkeep.vacuum"(): void {
      statements.all(`PRAGMA incremental_vacuum(${vacuumPages})`);
    },
    /** Writes a few pages and takes them back: fails while there is no room. */
    "upkeep.probe"(): void {
      statements.run("INSERT OR REPLACE INTO settings (name, value) VALUES (' probe', zeroblob(65536))");
      statements.run("DELETE FROM settings WHERE name = ' probe'");
    },
  };
}
