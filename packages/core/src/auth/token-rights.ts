import type { TokenRecord } from "../ports/token-store.ts";

/** What a token is made with; the rest is the store's. */
export type TokenRights = Omit<TokenRecord, "id" | "sha256" | "createdAt" | "lastUsedAt">;
