import type { Statements } from "./database.ts";

/** Entries of one commit. */
export interface LogChunk {
  readonly id: string;
  readonly first: number;
  readonly last: number;
  /** As `packEntries` makes it. */
  readonly entries: string;
  /** Milliseconds since the epoch. Null: the log goes on. */
  readonly endedAt: number | null;
  /** Entries before this one are no longer kept. */
  readonly keptFrom: number;
}

export interface KeptChunk {
  readonly first: number;
  readonly entries: string;
}

export function logOperations(statements: Statements) {
  const keyOf = (id: string): number => {
    const row =
      statements.get<{ key: number }>("SELECT key FROM logs WHERE id = ?", id) ??
      statements.get<{ key: number }>("INSERT INTO logs (id) VALUES (?) RETURNING key", id);
    return row?.key ?? 0;
  };
  return {
    "logs.append"({ id, first, last, entries, endedAt, keptFrom }: LogChunk): void {
      const key = keyOf(id);
      // A log that begins anew, or what a failed commit may have left behind.
      statements.run("DELETE FROM events WHERE log = ? AND last >= ?", key, first);
      if (keptFrom > 1) statements.run("DELETE FROM events WHERE log = ? AND last < ?", key, keptFrom);
      statements.run("INSERT INTO events (log, first, last, entries) VALUES (?, ?, ?, ?)", key, first, last, entries);
      if (endedAt !== null) statements.run("UPDATE logs SET ended_at = ? WHERE key = ?", endedAt, key);
    },
    /** @returns undefined when there is no such log. */
    "logs.read"(id: string): KeptChunk[] | undefined {
      const log = statements.get<{ key: number }>("SELECT key FROM logs WHERE id = ?", id);
      if (log === undefined) return undefined;
      return statements.all<KeptChunk>("SELECT first, entries FROM events WHERE log = ? ORDER BY first", log.key);
    },
    "logs.delete"(id: string): void {
      statements.run("DELETE FROM logs WHERE id = ?", id);
    },
  };
}
