import { CoreError, type PrincipalRecord, type TokenStore } from "@plenum/core";
import type { DatabaseThread } from "./database-thread.ts";
import type { TokenRow } from "./thread/access.ts";

type TokenRecord = Parameters<TokenStore["putToken"]>[0];

const synced = { isSynced: true };

/** Principals and tokens on disk. */
export class SqliteTokenStore implements TokenStore {
  readonly #thread: DatabaseThread;

  constructor(thread: DatabaseThread) {
    this.#thread = thread;
  }

  principals(): Promise<readonly PrincipalRecord[]> {
    return this.#thread.call("principals.all", undefined);
  }

  async putPrincipal(record: PrincipalRecord): Promise<void> {
    await this.#thread.call("principals.put", record, synced);
  }

  deletePrincipal(id: string): Promise<boolean> {
    return this.#thread.call("principals.delete", id, synced);
  }

  async tokens(): Promise<readonly TokenRecord[]> {
    return (await this.#thread.call("tokens.all", undefined)).map(recordOf);
  }

  async putToken({ lastUsedAt, ...record }: TokenRecord): Promise<void> {
    const { id, principal, sha256 } = record;
    const row = { id, principal, sha256, lastUsedAt: lastUsedAt ?? null, record: JSON.stringify(record) };
    if (await this.#thread.call("tokens.put", row, synced)) return;
    throw new CoreError("conflict", "Another token has the same digest.");
  }

  deleteToken(id: string): Promise<boolean> {
    return this.#thread.call("tokens.delete", id, synced);
  }

  async touch(uses: ReadonlyMap<string, number>): Promise<void> {
    await this.#thread.call("tokens.touch", [...uses]);
  }
}

function recordOf({ record, lastUsedAt }: TokenRow): TokenRecord {
  return { ...JSON.parse(record), ...(lastUsedAt === null ? {} : { lastUsedAt }) };
}
