import type { PrincipalRecord, TokenRecord, TokenStore } from "../ports/token-store.ts";
import { CoreError } from "../problems/core-error.ts";

/** Principals and tokens in memory. */
export class MemoryTokenStore implements TokenStore {
  readonly #principals = new Map<string, PrincipalRecord>();
  readonly #tokens = new Map<string, TokenRecord>();

  async principals(): Promise<readonly PrincipalRecord[]> {
    return [...this.#principals.values()];
  }

  async putPrincipal(record: PrincipalRecord): Promise<void> {
    this.#principals.set(record.id, record);
  }

  async deletePrincipal(id: string): Promise<boolean> {
    for (const token of this.#tokens.values()) if (token.principal === id) this.#tokens.delete(token.id);
    return this.#principals.delete(id);
  }

  async tokens(): Promise<readonly TokenRecord[]> {
    return [...this.#tokens.values()];
  }

  async putToken(record: TokenRecord): Promise<void> {
    for (const { id, sha256 } of this.#tokens.values()) {
      if (sha256 === record.sha256 && id !== record.id) {
        throw new CoreError("conflict", "Another token has the same digest.");
      }
    }
    this.#tokens.set(record.id, record);
  }

  async deleteToken(id: string): Promise<boolean> {
    return this.#tokens.delete(id);
  }

  async touch(uses: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, atMs] of uses) {
      const token = this.#tokens.get(id);
      if (token !== undefined) this.#tokens.set(id, { ...token, lastUsedAt: Math.max(token.lastUsedAt ?? 0, atMs) });
    }
  }
}
