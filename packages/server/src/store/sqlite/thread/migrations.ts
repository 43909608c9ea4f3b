import type { DatabaseSyncInstance } from "@photostructure/sqlite";

/**
 * The schema, as the steps that lead to it; `user_version` is the number of steps taken. A step that was released never
 * changes.
 *
 * - `responses`: one row for each response. `request` and `response` are JSON, null where no text is kept: then the row
 *   says only whose it is, when and how it ended. `ended_at` is what the retention counts from: `finished_at`, moved when
 *   the clock jumps.
 * - `logs`, `events`: the event log of a stored response; a row of `events` is the entries of one commit, packed as in
 *   `event-chunk.ts`. A log can be there before its response is.
 * - `tasks`, `task_events`, `task_lines`: other tasks, their events, the finished lines of a batch. `record` is the task
 *   without its request.
 * - `principals`, `tokens`, `idempotency_keys`, `settings`: as in their ports.
 *
 * `place` is the order of arrival, whatever the clock said. Times are milliseconds since the epoch.
 */
const steps: readonly string[] = [
  `
  CREATE TABLE responses (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    door TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    is_background INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    ended_at INTEGER,
    problem_code TEXT,
    cancel_requested TEXT,
    epoch INTEGER NOT NULL,
    fairness_key TEXT,
    request TEXT,
    response TEXT
  );
  CREATE INDEX responses_by_time ON responses (created_at, id);
  CREATE INDEX responses_by_owner ON responses (owner, created_at, id);
  CREATE INDEX responses_ended ON responses (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX responses_unfinished ON responses (place) WHERE ended_at IS NULL;

  CREATE TABLE logs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    ended_at INTEGER
  );
  CREATE INDEX logs_ended ON logs (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE events (
    log INTEGER NOT NULL REFERENCES logs ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    entries TEXT NOT NULL
  );
  CREATE UNIQUE INDEX events_by_place ON events (log, first);

  CREATE TABLE tasks (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    cancel_requested TEXT,
    last_event INTEGER NOT NULL DEFAULT 0,
    request TEXT NOT NULL,
    record TEXT NOT NULL
  );
  CREATE INDEX tasks_by_time ON tasks (created_at, id);
  CREATE INDEX tasks_ended ON tasks (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE task_events (
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (task, sequence)
  ) WITHOUT ROWID;
  CREATE TABLE task_lines (
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    line INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (task, line)
  );

  CREATE TABLE principals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
  );
  CREATE TABLE tokens (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    last_used_at INTEGER,
    record TEXT NOT NULL
  );
  CREATE INDEX tokens_by_principal ON tokens (principal);
  CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    body_sha256 TEXT NOT NULL,
    id TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) WITHOUT ROWID;
  `,
];

/**
 * Takes the steps that are missing, each in a transaction.
 * @param taken the file's `user_version`.
 * @throws when a newer version made the file.
 */
export function migrate(database: DatabaseSyncInstance, taken: number): void {
  if (taken > steps.length) {
    throw Object.assign(new Error(`schema ${taken}, known up to ${steps.length}`), { kind: "newer" });
  }
  for (const [index, step] of steps.entries()) {
    if (index < taken) continue;
    database.exec("BEGIN IMMEDIATE");
    try {
      database.exec(step);
      database.exec(`PRAGMA user_version = ${index + 1}`);
      database.exec("COMMIT");
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }
}

/** Tables in an order in which their rows may be copied. */
export const tables = [
  "settings",
  "principals",
  "tokens",
  "idempotency_keys",
  "responses",
  "logs",
  "events",
  "tasks",
  "task_events",
  "task_lines",
] as const;
