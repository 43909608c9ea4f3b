import type { Statements } from "./database.ts";

/** A response as the database keeps it; `request` and `response` are JSON, null where no text is kept. */
export interface ResponseRow {
  readonly id: string;
  readonly owner: string;
  readonly door: string;
  readonly model: string;
  readonly status: string;
  readonly attempt: number;
  readonly priority: number;
  readonly is_background: 0 | 1;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  readonly problem_code: string | null;
  readonly cancel_requested: string | null;
  readonly epoch: number;
  readonly fairness_key: string | null;
  /** In a change: null leaves the request as it is. */
  readonly request: string | null;
  readonly response: string | null;
}

export interface ResponseListing {
  readonly owner?: string;
  readonly door?: string;
  readonly model?: string;
  readonly status?: string;
  readonly background?: boolean;
  readonly limit: number;
  /** What is older than this follows. */
  readonly after?: { readonly createdAt: number; readonly id: string };
}

const columns =
  "id, owner, door, model, status, attempt, priority, is_background, created_at, started_at, finished_at, problem_code, cancel_requested, epoch, fairness_key, request, response";

const put = `INSERT INTO responses (${columns}, ended_at) VALUES (${columns.replace(/\w+/g, "?")}, ?)
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, attempt = excluded.attempt, priority = excluded.priority,
    started_at = excluded.started_at, finished_at = excluded.finished_at, ended_at = excluded.ended_at,
    problem_code = excluded.problem_code, cancel_requested = coalesce(cancel_requested, excluded.cancel_requested),
    epoch = excluded.epoch, request = coalesce(excluded.request, request), response = excluded.response`;

export function responseOperations(statements: Statements) {
  const { last } = statements.get<{ last: number | null }>("SELECT max(place) AS last FROM responses") ?? { last: 0 };
  /** Rows up to here are an earlier process's. */
  const earlier = last ?? 0;
  return {
    "responses.put"(row: ResponseRow): void {
      statements.run(
        put,
        row.id,
        row.owner,
        row.door,
        row.model,
        row.status,
        row.attempt,
        row.priority,
        row.is_background,
        row.created_at,
        row.started_at,
        row.finished_at,
        row.problem_code,
        row.cancel_requested,
        row.epoch,
        row.fairness_key,
        row.request,
        row.response,
        row.finished_at,
      );
    },
    "responses.get"(id: string): ResponseRow | undefined {
      return statements.get<ResponseRow>(`SELECT ${columns} FROM responses WHERE id = ?`, id);
    },
    "responses.list"({ after, limit, background, ...equal }: ResponseListing): ResponseRow[] {
      const conditions = ["TRUE"];
      const values: (string | number)[] = [];
      for (const [column, value] of Object.entries(equal)) {
        conditions.push(`${column} = ?`);
        values.push(value);
      }
      if (background !== undefined) {
        conditions.push("is_background = ?");
        values.push(background ? 1 : 0);
      }
      if (after !== undefined) {
        conditions.push("(created_at, id) < (?, ?)");
        values.push(after.createdAt, after.id);
      }
      const where = conditions.join(" AND ");
      return statements.all<ResponseRow>(
        `SELECT ${columns} FROM responses WHERE ${where} ORDER BY created_at DESC, id DESC LIMIT ?`,
        ...values,
        limit,
      );
    },
    /** @returns whether there is such a row. */
    "responses.cancel"({ id, reason }: { readonly id: string; readonly reason: string }): boolean {
      const sql = "UPDATE responses SET cancel_requested = coalesce(cancel_requested, ?) WHERE id = ?";
      return statements.run(sql, reason, id) > 0;
    },
    "responses.delete"(id: string): void {
      statements.run("DELETE FROM responses WHERE id = ?", id);
      statements.run("DELETE FROM logs WHERE id = ?", id);
    },
    /** What an earlier process left unfinished, in order of arrival. */
    "responses.unfinished"(): ResponseRow[] {
      return statements.all<ResponseRow>(
        `SELECT ${columns} FROM responses WHERE ended_at IS NULL AND place <= ? ORDER BY place`,
        earlier,
      );
    },
    /** Ends what has no text and was interrupted by the end of an earlier process: nobody can go on with it. */
    "responses.interrupt"(now: number): void {
      statements.run(
        `UPDATE responses SET status = 'failed', problem_code = 'interrupted', finished_at = max(?1, created_at),
          ended_at = ?1 WHERE ended_at IS NULL AND response IS NULL AND place <= ?2`,
        now,
        earlier,
      );
      // A log is written in the same moment as its response, or shortly before.
      statements.run("DELETE FROM logs WHERE id NOT IN (SELECT id FROM responses)");
    },
    /**
     * Deletes what ended long enough ago, at most a few hundred rows.
     * @returns the ids that are gone, with those whose events only are.
     */
    "responses.sweep"({ now, eventMs, taskMs }: { now: number; eventMs: number; taskMs: number }): string[] {
      const gone = statements.all<{ id: string }>(
        `DELETE FROM responses WHERE place IN (
          SELECT place FROM responses WHERE ended_at <= CASE is_background WHEN 1 THEN ?1 ELSE ?2 END
            AND (response IS NOT NULL OR place <= ?3) LIMIT 500) RETURNING id`,
        now - taskMs,
        now - eventMs,
        earlier,
      );
      for (const { id } of gone) statements.run("DELETE FROM logs WHERE id = ?", id);
      const logs = statements.all<{ id: string }>(
        "DELETE FROM logs WHERE key IN (SELECT key FROM logs WHERE ended_at <= ? LIMIT 500) RETURNING id",
        now - eventMs,
      );
      return [...gone, ...logs].map(({ id }) => id);
    },
  };
}
