import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Sha256 } from "../ports/digest.ts";
import type { Ids } from "../ports/ids.ts";
import type { PrincipalRecord, TokenRecord, TokenStore } from "../ports/token-store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Authenticator } from "./authenticator.ts";
import { newToken } from "./new-token.ts";
import { scopes } from "./principal.ts";
import type { TokenRights } from "./token-rights.ts";
import { validatePrincipal, validateRights } from "./validate-token.ts";

/** The only place where a token itself is: it is shown once and kept nowhere. */
export interface NewToken {
  readonly token: string;
  readonly record: TokenRecord;
}

export interface TokensOptions {
  /** Tokens of the configuration: listed, never changed. */
  readonly fixed: readonly TokenRecord[];
  readonly store: TokenStore;
  readonly authenticator: Pick<Authenticator, "reload">;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sha256: Sha256;
  /** False: the service never becomes open, so an admin must stay. */
  readonly mayBeOpen: boolean;
}

/** Longest time that a rotated token goes on, in milliseconds: 30 days. */
const mostGraceMs = 30 * 24 * 3_600_000;

/** Principals and their tokens (LMSP §2). A change is in force on this replica when its promise resolves. */
export class Tokens {
  readonly #options: TokensOptions;
  /** Changes one after the other: each looks at what the one before left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  /** Those that were made, in the order of their ids, and those that only tokens of the configuration name. */
  async principals(): Promise<readonly (Pick<PrincipalRecord, "id" | "name"> & Partial<PrincipalRecord>)[]> {
    const kept = await this.#options.store.principals();
    const known = new Set(kept.map(({ id }) => id));
    const named = new Set(this.#options.fixed.map(({ principal }) => principal).filter((id) => !known.has(id)));
    const all = [...kept, ...[...named].map((id) => ({ id, name: id }))];
    return all.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** @throws CoreError invalid-request; conflict when there is one of this id. */
  async createPrincipal(id: string, name = id): Promise<PrincipalRecord> {
    validatePrincipal(id, name);
    return await this.#inTurn(async () => {
      const all = await this.principals();
      if (all.some((principal) => principal.id === id)) {
        throw new CoreError("conflict", `There is a principal '${id}' already.`, { param: "id" });
      }
      return await this.#putPrincipal(id, name);
    });
  }

  /**
   * Deletes a principal with all its tokens; what it owns stays, for admins to see.
   * @throws CoreError not-found; conflict for one that the configuration names, or that has the last admin token.
   */
  deletePrincipal(id: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#options.fixed.some(({ principal }) => principal === id)) {
        throw new CoreError("conflict", `'${id}' has a token in the configuration; take that away first.`, {
          param: "id",
        });
      }
      this.#requireAdmin((await this.list()).filter(({ principal }) => principal !== id));
      if (!(await this.#options.store.deletePrincipal(id))) {
        throw new CoreError("not-found", `There is no principal '${id}'.`, { param: "id" });
      }
      await this.#tellChange(id);
    });
  }

  /** Oldest first, those of the configuration before all others. */
  async list(): Promise<readonly TokenRecord[]> {
    const kept = await this.#options.store.tokens();
    return [...this.#options.fixed, ...[...kept].sort((a, b) => a.createdAt - b.createdAt)];
  }

  /**
   * Makes a token, and its principal when there is none. From the first one on, the service requires tokens.
   * @throws CoreError invalid-request; conflict when no token could make further ones.
   */
  async create(rights: TokenRights): Promise<NewToken> {
    validatePrincipal(rights.principal, rights.principal);
    validateRights(rights, this.#options.clock.now());
    return await this.#inTurn(async () => {
      const isAdmin = rights.scopes.includes("admin");
      if (!isAdmin && !(await this.list()).some((record) => this.#isAdmin(record))) {
        throw new CoreError(
          "conflict",
          "Make a token with the scope 'admin' first: from the first token on every request needs one, and only an admin can make more.",
          { param: "scopes" },
        );
      }
      const principals = await this.#options.store.principals();
      if (!principals.some(({ id }) => id === rights.principal)) {
        await this.#putPrincipal(rights.principal, rights.principal);
      }
      return await this.#put(rights);
    });
  }

  /**
   * Makes a token with the rights of another one, which goes on for the grace and ends then.
   * @param graceMs milliseconds, 0 … 30 days; 0: the old one ends at once.
   * @throws CoreError not-found; invalid-request; conflict for one of the configuration, or that has expired.
   */
  async rotate(id: string, graceMs: number): Promise<NewToken> {
    if (!Number.isFinite(graceMs) || graceMs < 0 || graceMs > mostGraceMs) {
      throw new CoreError("invalid-request", "The grace must be from 0 s to 30 days.", { param: "grace_s" });
    }
    return await this.#inTurn(async () => {
      const {
        id: _id,
        sha256: _sha256,
        createdAt: _createdAt,
        lastUsedAt: _lastUsedAt,
        ...rights
      } = await this.#own(id);
      const now = this.#options.clock.now();
      const { expiresAtMs = Number.POSITIVE_INFINITY } = rights;
      if (expiresAtMs <= now) {
        throw new CoreError("conflict", "The token has expired; make another one.", { param: "id" });
      }
      const made = await this.#put(rights);
      if (graceMs === 0) await this.#options.store.deleteToken(id);
      else {
        const old = await this.#own(id);
        await this.#options.store.putToken({ ...old, expiresAtMs: Math.min(expiresAtMs, now + graceMs) });
      }
      await this.#tellChange(id);
      return made;
    });
  }

  /**
   * Ends a token at once, on every replica.
   * @throws CoreError not-found; conflict for one of the configuration, or for the last admin token.
   */
  revoke(id: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#own(id);
      this.#requireAdmin((await this.list()).filter((record) => record.id !== id));
      await this.#options.store.deleteToken(id);
      await this.#tellChange(id);
    });
  }

  /**
   * Makes the first token, with every scope, when there is none at all.
   * @param keep puts the token where its owner finds it; when that fails, none is made.
   * @returns undefined when there is one.
   */
  createFirst(principal: string, keep: (token: string) => Promise<void>): Promise<NewToken | undefined> {
    return this.#inTurn(async () => {
      if ((await this.list()).length > 0) return undefined;
      const token = newToken();
      await keep(token);
      await this.#putPrincipal(principal, principal);
      return await this.#put({ principal, name: "first", scopes }, token);
    });
  }

  async #put(rights: TokenRights, token = newToken()): Promise<NewToken> {
    const { store, ids, sha256, clock } = this.#options;
    const record = { ...rights, id: `tok_${ids.unique()}`, sha256: sha256(token), createdAt: clock.now() };
    await store.putToken(record);
    await this.#tellChange(record.id);
    return { token, record };
  }

  async #putPrincipal(id: string, name: string): Promise<PrincipalRecord> {
    const record = { id, name, createdAt: this.#options.clock.now() };
    await this.#options.store.putPrincipal(record);
    return record;
  }

  /** @throws CoreError not-found; conflict for one of the configuration. */
  async #own(id: string): Promise<TokenRecord> {
    if (this.#options.fixed.some((record) => record.id === id)) {
      throw new CoreError("conflict", `'${id}' is a token of the configuration; change it there.`, { param: "id" });
    }
    const record = (await this.#options.store.tokens()).find((token) => token.id === id);
    if (record === undefined) throw new CoreError("not-found", `There is no token '${id}'.`, { param: "id" });
    return record;
  }

  /** Somebody must be able to make tokens, unless none at all is left on a service that may be open then. */
  #requireAdmin(left: readonly TokenRecord[]): void {
    if (left.some((record) => this.#isAdmin(record)) || (left.length === 0 && this.#options.mayBeOpen)) return;
    throw new CoreError(
      "conflict",
      "Nobody would be left who can make tokens; make another token with the scope 'admin' first.",
      { param: "id" },
    );
  }

  #isAdmin({ scopes: own, expiresAtMs = Number.POSITIVE_INFINITY }: TokenRecord): boolean {
    return own.includes("admin") && expiresAtMs > this.#options.clock.now();
  }

  /** In force here when it resolves; elsewhere by the notification. */
  async #tellChange(id: string): Promise<void> {
    const { authenticator, bus } = this.#options;
    bus.publish("tokens.changed", id);
    await authenticator.reload();
  }

  async #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(change, change);
    this.#last = turn.catch(() => {});
    return await turn;
  }
}
