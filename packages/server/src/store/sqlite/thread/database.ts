import { closeSync, fstatSync, mkdirSync, openSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { migrate } from "./migrations.ts";

export type Database = DatabaseSyncInstance;

/** What is wrong with the file or the disk, as far as somebody can act on it. */
export type FaultKind = "in-use" | "full" | "corrupt" | "newer" | "other";

/** The numbers of https://sqlite.org/rescode.html that are told apart. */
const faultKinds: Readonly<Record<number, FaultKind>> = {
  5: "in-use",
  6: "in-use",
  10: "full",
  11: "corrupt",
  13: "full",
  26: "corrupt",
};

/** Node's own module where it has one, else the package with the same API. */
function loadSqlite(): { readonly DatabaseSync: new (file: string, options?: object) => Database } {
  return process.getBuiltinModule?.("node:sqlite") ?? createRequire(import.meta.url)("@photostructure/sqlite");
}

/** Opens a database as it is. @param options.readOnly @default false */
export function openPlain(file: string, options: { readonly readOnly?: boolean } = {}): Database {
  const { DatabaseSync } = loadSqlite();
  return new DatabaseSync(file, options);
}

/**
 * Opens the service's database, made when it is missing, and brings its schema up to date. Only its owner may read the file.
 * @param maxBytes most bytes of the file; 0: no limit.
 * @throws with what `faultOf` tells apart.
 */
export function openDatabase(file: string, maxBytes: number): Database {
  mkdirSync(dirname(file), { recursive: true });
  const descriptor = openSync(file, "a", 0o600);
  const isNew = fstatSync(descriptor).size === 0;
  closeSync(descriptor);
  const database = openPlain(file);
  try {
    // An exclusive lock before the first access: no second process, no shared memory file.
    database.exec("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE");
    if (isNew) database.exec("PRAGMA auto_vacuum = INCREMENTAL");
    database.exec("PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 16777216; PRAGMA foreign_keys = ON");
    database.exec("BEGIN IMMEDIATE; COMMIT");
    requireSound(database);
    migrate(database, pragma(database, "user_version"));
    limitSize(database, maxBytes);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Largest file whose pages are all looked at when it is opened: that takes well below a second. */
const checkedPages = 16_384;

function requireSound(database: Database): void {
  if (pragma(database, "page_count") > checkedPages) return;
  const verdict = once(database, "PRAGMA quick_check(1)");
  if (verdict !== "ok") throw Object.assign(new Error(String(verdict)), { errcode: 11 });
}

function limitSize(database: Database, maxBytes: number): void {
  if (maxBytes === 0) return;
  const pages = Math.max(64, Math.floor(maxBytes / pragma(database, "page_size")));
  database.exec(`PRAGMA max_page_count = ${pages}`);
}

/** Value of a PRAGMA that is a number. */
export function pragma(database: Database, name: string): number {
  return Number(once(database, `PRAGMA ${name}`));
}

/** First value of the first row. */
export function once(database: Database, sql: string): unknown {
  return Object.values(database.prepare(sql).get() ?? {})[0];
}

/** What an error of SQLite means. */
export function faultOf(error: unknown): FaultKind {
  if (typeof error !== "object" || error === null) return "other";
  if ("kind" in error && error.kind === "newer") return "newer";
  // A result's lowest byte is the kind, the others are its details.
  if ("errcode" in error && typeof error.errcode === "number") return faultKinds[error.errcode & 0xff] ?? "other";
  return "other";
}

type Value = string | number | null;

/** Runs statements, each prepared once. */
export class Statements {
  readonly database: Database;
  readonly #prepared = new Map<string, StatementSyncInstance>();

  constructor(database: Database) {
    this.database = database;
  }

  /** @returns rows that were changed. */
  run(sql: string, ...values: readonly Value[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /** @param Row columns that the SQL selects */
  get<Row>(sql: string, ...values: readonly Value[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined;
  }

  /** @param Row columns that the SQL selects */
  all<Row>(sql: string, ...values: readonly Value[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[];
  }

  #prepare(sql: string): StatementSyncInstance {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}
