import type { Statements } from "./database.ts";

/** A task as the database keeps it: `request` and `record` are JSON. */
export interface TaskRow {
  readonly id: string;
  readonly owner: string;
  readonly kind: string;
  readonly state: string;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly cancel_requested: string | null;
  readonly request: string;
  readonly record: string;
}

export interface TaskListing {
  readonly owner?: string;
  readonly kind?: string;
  readonly state?: string;
  readonly limit: number;
  /** What is older than this follows. */
  readonly after?: { readonly createdAt: number; readonly id: string };
}

const columns = "id, owner, kind, state, created_at, ended_at, cancel_requested, request, record";
/** For a look: without what is large. */
const headColumns = columns.replace(
  "request, record",
  "iif(length(request) <= 8192, request, 'null') AS request, record",
);

export function taskOperations(statements: Statements) {
  const placeOf = (id: string): number | undefined =>
    statements.get<{ place: number }>("SELECT place FROM tasks WHERE id = ?", id)?.place;
  return {
    "tasks.put"(row: TaskRow): void {
      statements.run(
        `INSERT INTO tasks (${columns}) VALUES (${columns.replace(/\w+/g, "?")})
          ON CONFLICT (id) DO UPDATE SET state = excluded.state, ended_at = excluded.ended_at,
            cancel_requested = coalesce(cancel_requested, excluded.cancel_requested), request = excluded.request,
            record = excluded.record`,
        row.id,
        row.owner,
        row.kind,
        row.state,
        row.created_at,
        row.ended_at,
        row.cancel_requested,
        row.request,
        row.record,
      );
    },
    "tasks.get"(id: string): TaskRow | undefined {
      return statements.get<TaskRow>(`SELECT ${columns} FROM tasks WHERE id = ?`, id);
    },
    "tasks.head"(id: string): TaskRow | undefined {
      return statements.get<TaskRow>(`SELECT ${headColumns} FROM tasks WHERE id = ?`, id);
    },
    "tasks.list"({ after, limit, ...equal }: TaskListing): TaskRow[] {
      const conditions = ["TRUE"];
      const values: (string | number)[] = [];
      for (const [column, value] of Object.entries(equal)) {
        conditions.push(`${column} = ?`);
        values.push(value);
      }
      if (after !== undefined) {
        conditions.push("(created_at, id) < (?, ?)");
        values.push(after.createdAt, after.id);
      }
      return statements.all<TaskRow>(
        `SELECT ${headColumns} FROM tasks WHERE ${conditions.join(" AND ")} ORDER BY created_at DESC, id DESC LIMIT ?`,
        ...values,
        limit,
      );
    },
    "tasks.unfinished"(): TaskRow[] {
      return statements.all<TaskRow>(
        `SELECT ${headColumns} FROM tasks WHERE state IN ('queued', 'running') ORDER BY place`,
      );
    },
    /** @returns whether there is such a row. */
    "tasks.cancel"({ id, reason }: { readonly id: string; readonly reason: string }): boolean {
      const sql = "UPDATE tasks SET cancel_requested = coalesce(cancel_requested, ?) WHERE id = ?";
      return statements.run(sql, reason, id) > 0;
    },
    "tasks.delete"(id: string): void {
      statements.run("DELETE FROM tasks WHERE id = ?", id);
    },
    /** @returns the last event's number before this one; undefined: there is no such task. Appends only the next one. */
    "tasks.event"(event: {
      readonly id: string;
      readonly sequence: number;
      readonly event: string;
      readonly state: string;
      readonly endedAt: number | null;
      readonly record: string;
    }): number | undefined {
      const sql = "SELECT place, last_event AS last FROM tasks WHERE id = ?";
      const task = statements.get<{ place: number; last: number }>(sql, event.id);
      if (task === undefined || event.sequence !== task.last + 1) return task?.last;
      const { place } = task;
      statements.run(
        "INSERT INTO task_events (task, sequence, event) VALUES (?, ?, ?)",
        place,
        event.sequence,
        event.event,
      );
      statements.run(
        "UPDATE tasks SET state = ?, ended_at = ?, record = ?, last_event = ? WHERE place = ?",
        event.state,
        event.endedAt,
        event.record,
        event.sequence,
        place,
      );
      return task.last;
    },
    "tasks.events"({ id, after }: { readonly id: string; readonly after: number }): string[] {
      const place = placeOf(id);
      if (place === undefined) return [];
      const sql = "SELECT event FROM task_events WHERE task = ? AND sequence > ? ORDER BY sequence";
      return statements.all<{ event: string }>(sql, place, after).map(({ event }) => event);
    },
    /** @returns whether there is such a task. */
    "tasks.putLine"({
      id,
      line,
      text,
    }: {
      readonly id: string;
      readonly line: number;
      readonly text: string;
    }): boolean {
      const place = placeOf(id);
      if (place === undefined) return false;
      statements.run("INSERT OR IGNORE INTO task_lines (task, line, text) VALUES (?, ?, ?)", place, line, text);
      return true;
    },
    "tasks.lines"({ id, from, limit }: { readonly id: string; readonly from: number; readonly limit: number }) {
      const place = placeOf(id);
      if (place === undefined) return [];
      const sql = 'SELECT line AS "index", text FROM task_lines WHERE task = ? AND line >= ? ORDER BY line LIMIT ?';
      return statements.all<{ readonly index: number; readonly text: string }>(sql, place, from, limit);
    },
    "tasks.finishedLines"(id: string): number[] {
      const place = placeOf(id);
      if (place === undefined) return [];
      const rows = statements.all<{ line: number }>("SELECT line FROM task_lines WHERE task = ?", place);
      return rows.map(({ line }) => line);
    },
    "tasks.sweep"(endedBefore: number): string[] {
      const sql = "DELETE FROM tasks WHERE ended_at < ? RETURNING id";
      return statements.all<{ id: string }>(sql, endedBefore).map(({ id }) => id);
    },
  };
}
