import type { Scope } from "../auth/principal.ts";

/** A person or an app, as it is kept (LMSP §2). */
export interface PrincipalRecord {
  readonly id: string;
  /** For people to read. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A token as it is kept: never the token itself. */
export interface TokenRecord {
  /** `tok_<x>`, or `config-<n>` for one of the configuration. */
  readonly id: string;
  /** Principal's id. */
  readonly principal: string;
  /** For people to read. */
  readonly name?: string;
  /** SHA-256 of the token, 64 hex digits in lower case. */
  readonly sha256: string;
  readonly scopes: readonly Scope[];
  /** Catalog ids, or patterns with `*`. Absent: every model. */
  readonly models?: readonly string[];
  /** Milliseconds since the epoch; absent: never. */
  readonly expiresAtMs?: number;
  /** Highest priority that it may ask for, -8 … 8. Absent: 8. */
  readonly topPriority?: number;
  /** Accepted requests in any 60 s. Absent: no limit. */
  readonly requestsPerMinute?: number;
  /** Tokens of prompts and answers in any 60 s. Absent: no limit. */
  readonly tokensPerMinute?: number;
  /** Responses that wait or run at once. Absent: no limit. */
  readonly concurrency?: number;
  /** Milliseconds since the epoch, as the next one. */
  readonly createdAt: number;
  readonly lastUsedAt?: number;
}

/** Where principals and tokens are kept. Every implementation runs `testTokenStore`. */
export interface TokenStore {
  principals(): Promise<readonly PrincipalRecord[]>;
  putPrincipal(record: PrincipalRecord): Promise<void>;
  /** With its tokens. @returns false when there is none. */
  deletePrincipal(id: string): Promise<boolean>;
  tokens(): Promise<readonly TokenRecord[]>;
  /** @throws CoreError conflict when another record has the same digest. */
  putToken(record: TokenRecord): Promise<void>;
  /** @returns false when there is none. */
  deleteToken(id: string): Promise<boolean>;
  /** Notes uses, at most every few seconds for each token. */
  touch(uses: ReadonlyMap<string, number>): Promise<void>;
}
