import { describe, expect, it } from "vitest";
import type { TokenRecord, TokenStore } from "./token-store.ts";

function token(id: string, changes: Partial<TokenRecord> = {}): TokenRecord {
  return { id, principal: "ann", sha256: id.padStart(64, "0"), scopes: ["read"], createdAt: 1, ...changes };
}

/** What every store of tokens does alike. */
export function testTokenStore(name: string, create: () => Promise<TokenStore>): void {
  describe(`token store: ${name}`, () => {
    it("keeps principals and replaces them", async () => {
      const store = await create();
      await store.putPrincipal({ id: "ann", name: "Ann", createdAt: 1 });
      await store.putPrincipal({ id: "bob", name: "Bob", createdAt: 2 });
      await store.putPrincipal({ id: "ann", name: "Anna", createdAt: 1 });
      expect(await store.principals()).toEqual([
        { id: "ann", name: "Anna", createdAt: 1 },
        { id: "bob", name: "Bob", createdAt: 2 },
      ]);
    });

    it("keeps every member of a token and replaces it", async () => {
      const store = await create();
      const whole = token("1", {
        name: "laptop",
        scopes: ["read", "infer"],
        models: ["a*"],
        expiresAtMs: 5,
        topPriority: -3,
        requestsPerMinute: 10,
        tokensPerMinute: 1000,
        concurrency: 2,
        lastUsedAt: 4,
      });
      await store.putToken(token("1"));
      await store.putToken(whole);
      await store.putToken(token("2"));
      expect(await store.tokens()).toEqual([whole, token("2")]);
    });

    it("refuses a digest that another token has", async () => {
      const store = await create();
      await store.putToken(token("1"));
      await expect(store.putToken({ ...token("2"), sha256: token("1").sha256 })).rejects.toMatchObject({
        code: "conflict",
      });
      expect(await store.tokens()).toHaveLength(1);
    });

    it("deletes tokens, and a principal with its tokens", async () => {
      const store = await create();
      await store.putPrincipal({ id: "ann", name: "Ann", createdAt: 1 });
      for (const id of ["1", "2"]) await store.putToken(token(id));
      await store.putToken(token("3", { principal: "bob" }));
      expect(await store.deleteToken("1")).toBe(true);
      expect(await store.deleteToken("1")).toBe(false);
      expect(await store.deletePrincipal("ann")).toBe(true);
      expect(await store.deletePrincipal("ann")).toBe(false);
      expect((await store.tokens()).map(({ id }) => id)).toEqual(["3"]);
    });

    it("notes the last use, which never goes back", async () => {
      const store = await create();
      await store.putToken(token("1"));
      await store.touch(new Map([["1", 20]]));
      await store.touch(
        new Map([
          ["1", 10],
          ["gone", 10],
        ]),
      );
      expect((await store.tokens()).map(({ lastUsedAt }) => lastUsedAt)).toEqual([20]);
    });
  });
}
