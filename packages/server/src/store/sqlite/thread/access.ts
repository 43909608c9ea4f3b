import type { Statements } from "./database.ts";

interface KeyRow {
  readonly key: string;
  readonly bodySha256: string;
  readonly id: string;
  readonly expiresAt: number;
}

interface PrincipalRow {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
}

/** A token's record is JSON without `lastUsedAt`. */
export interface TokenRow {
  readonly id: string;
  readonly principal: string;
  readonly sha256: string;
  readonly lastUsedAt: number | null;
  readonly record: string;
}

/** Principals, tokens, idempotency keys and settings. */
export function accessOperations(statements: Statements) {
  return {
    "principals.all"(): PrincipalRow[] {
      return statements.all<PrincipalRow>("SELECT id, name, created_at AS createdAt FROM principals ORDER BY place");
    },
    "principals.put"({ id, name, createdAt }: PrincipalRow): void {
      statements.run(
        `INSERT INTO principals (id, name, created_at) VALUES (?, ?, ?)
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, created_at = excluded.created_at`,
        id,
        name,
        createdAt,
      );
    },
    /** @returns whether there was one. */
    "principals.delete"(id: string): boolean {
      statements.run("DELETE FROM tokens WHERE principal = ?", id);
      return statements.run("DELETE FROM principals WHERE id = ?", id) > 0;
    },
    "tokens.all"(): TokenRow[] {
      return statements.all<TokenRow>(
        "SELECT id, principal, sha256, last_used_at AS lastUsedAt, record FROM tokens ORDER BY place",
      );
    },
    /** @returns false when another token has the digest. */
    "tokens.put"({ id, principal, sha256, lastUsedAt, record }: TokenRow): boolean {
      const sql = "SELECT id FROM tokens WHERE sha256 = ? AND id <> ?";
      if (statements.get<{ id: string }>(sql, sha256, id) !== undefined) return false;
      statements.run(
        `INSERT INTO tokens (id, principal, sha256, last_used_at, record) VALUES (?, ?, ?, ?, ?)
          ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, sha256 = excluded.sha256,
            last_used_at = excluded.last_used_at, record = excluded.record`,
        id,
        principal,
        sha256,
        lastUsedAt,
        record,
      );
      return true;
    },
    /** @returns whether there was one. */
    "tokens.delete"(id: string): boolean {
      return statements.run("DELETE FROM tokens WHERE id = ?", id) > 0;
    },
    "tokens.touch"(uses: readonly (readonly [id: string, atMs: number])[]): void {
      const sql = "UPDATE tokens SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?";
      for (const [id, atMs] of uses) statements.run(sql, atMs, id);
    },
    /** @returns who holds the key already. */
    "keys.claim"({ record, now }: { readonly record: KeyRow; readonly now: number }): KeyRow | undefined {
      const holder = statements.get<KeyRow>(
        `SELECT key, body_sha256 AS bodySha256, id, expires_at AS expiresAt FROM idempotency_keys
          WHERE key = ? AND expires_at > ?`,
        record.key,
        now,
      );
      if (holder !== undefined) return holder;
      statements.run(
        "INSERT OR REPLACE INTO idempotency_keys (key, body_sha256, id, expires_at) VALUES (?, ?, ?, ?)",
        record.key,
        record.bodySha256,
        record.id,
        record.expiresAt,
      );
      return undefined;
    },
    "keys.release"({ key, id }: { readonly key: string; readonly id: string }): void {
      statements.run("DELETE FROM idempotency_keys WHERE key = ? AND id = ?", key, id);
    },
    "keys.sweep"(now: number): void {
      statements.run("DELETE FROM idempotency_keys WHERE expires_at <= ?", now);
    },
    "settings.get"(name: string): string | undefined {
      return statements.get<{ value: string }>("SELECT value FROM settings WHERE name = ?", name)?.value;
    },
    /** @param change.value JSON; undefined: deletes it. */
    "settings.set"({ name, value }: { readonly name: string; readonly value: string | undefined }): void {
      if (value === undefined) statements.run("DELETE FROM settings WHERE name = ?", name);
      else statements.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, value);
    },
    "settings.names"(prefix: string): string[] {
      const sql = "SELECT name FROM settings WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name";
      return statements.all<{ name: string }>(sql, prefix).map(({ name }) => name);
    },
  };
}
