import { describe, expect, it } from "vitest";
import type { CoreOptions } from "../core.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedBackend } from "../testing/scripted-backend.ts";
import { createTestCore, testSha256 } from "../testing/test-core.ts";
import type { TokenRights } from "./token-rights.ts";

const user: TokenRights = { principal: "ann", scopes: ["read", "infer"] };
const admin: TokenRights = { principal: "root", scopes: ["admin"] };

function setUp(options: Partial<Pick<CoreOptions, "tokens" | "mayBeOpen">> = {}) {
  const clock = new ManualClock();
  const core = createTestCore({ backends: [new ScriptedBackend("b", [])], clock, ...options });
  const nameOf = (token: string) => core.authenticator.authenticate(token, "x").principal.id;
  return { clock, core, tokens: core.tokens, nameOf };
}

const problem = (code: string, details: object = {}) => ({ code, details: expect.objectContaining(details) });

describe("tokens", () => {
  it("a token works from the moment that it is told, and no longer than until it is revoked", async () => {
    const { tokens, core, nameOf } = setUp();
    await tokens.create(admin);
    const { token, record } = await tokens.create({ ...user, name: "laptop" });
    expect(token).toMatch(/^plenum_[\w-]{43}$/);
    expect(JSON.stringify([await tokens.list(), record])).not.toContain(token);
    expect(nameOf(token)).toBe("ann");
    await tokens.revoke(record.id);
    expect(() => nameOf(token)).toThrow(expect.objectContaining({ code: "unauthorized" }));
    expect(core.authenticator.isRequired).toBe(true);
  });

  it("no two tokens are alike", async () => {
    const { tokens } = setUp();
    const made = await Promise.all(Array.from({ length: 50 }, () => tokens.create(admin)));
    expect(new Set(made.map(({ token }) => token)).size).toBe(50);
    expect(await tokens.list()).toHaveLength(50);
  });

  it("the first token must be an admin's, also when two are asked for at once", async () => {
    const { tokens } = setUp();
    await expect(tokens.create(user)).rejects.toMatchObject(problem("conflict", { param: "scopes" }));
    expect(await tokens.list()).toEqual([]);
    expect(await tokens.principals()).toEqual([]);
    const [first, second] = await Promise.allSettled([tokens.create(admin), tokens.create(user)]);
    expect([first.status, second.status]).toEqual(["fulfilled", "fulfilled"]);
  });

  it("the last admin token stays as long as there are others; the very last one may go where the service may be open", async () => {
    const { tokens, core } = setUp();
    const { record: root } = await tokens.create(admin);
    const { record: ann } = await tokens.create(user);
    await expect(tokens.revoke(root.id)).rejects.toMatchObject(problem("conflict"));
    await expect(tokens.deletePrincipal("root")).rejects.toMatchObject(problem("conflict"));
    await tokens.revoke(ann.id);
    await tokens.revoke(root.id);
    expect(core.authenticator.isRequired).toBe(false);
  });

  it("two admins can't revoke each other at once", async () => {
    const { tokens } = setUp({ mayBeOpen: false });
    const made = [await tokens.create(admin), await tokens.create({ ...admin, principal: "other" })];
    const results = await Promise.allSettled(made.map(({ record }) => tokens.revoke(record.id)));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  it("a rotated token goes on for its grace, with the same rights", async () => {
    const { tokens, clock, nameOf } = setUp();
    await tokens.create(admin);
    const old = await tokens.create({ ...user, models: ["m*"], tokensPerMinute: 10, topPriority: 2, name: "n" });
    const made = await tokens.rotate(old.record.id, 5_000);
    const { id: _, sha256, createdAt, ...rights } = made.record;
    expect(rights).toEqual({ ...user, models: ["m*"], tokensPerMinute: 10, topPriority: 2, name: "n" });
    expect([sha256, createdAt]).toEqual([testSha256(made.token), clock.now()]);
    expect([nameOf(old.token), nameOf(made.token)]).toEqual(["ann", "ann"]);
    clock.advance(5_000);
    expect(() => nameOf(old.token)).toThrow(expect.objectContaining({ code: "unauthorized" }));
    const last = await tokens.rotate(made.record.id, 0);
    expect(() => nameOf(made.token)).toThrow(expect.objectContaining({ code: "unauthorized" }));
    expect(nameOf(last.token)).toBe("ann");
  });

  it("what ends sooner by itself is not prolonged by a grace, and what has ended is not renewed", async () => {
    const { tokens, clock } = setUp();
    await tokens.create(admin);
    const expiresAtMs = clock.now() + 1_000;
    const { record } = await tokens.create({ ...user, expiresAtMs });
    await tokens.rotate(record.id, 60_000);
    expect(
      (await tokens.list()).filter(({ principal }) => principal === "ann").map((each) => each.expiresAtMs),
    ).toEqual([expiresAtMs, expiresAtMs]);
    clock.advance(1_000);
    await expect(tokens.rotate(record.id, 0)).rejects.toMatchObject(problem("conflict"));
  });

  it("an expired admin is none", async () => {
    const { tokens, clock } = setUp();
    await tokens.create({ ...admin, expiresAtMs: clock.now() + 1_000 });
    clock.advance(1_000);
    await expect(tokens.create(user)).rejects.toMatchObject(problem("conflict"));
  });

  it("tokens of the configuration are listed and stay as they are", async () => {
    const { tokens, nameOf } = setUp({ tokens: [{ ...admin, sha256: testSha256("root") }] });
    expect(nameOf("root")).toBe("root");
    expect(await tokens.list()).toEqual([expect.objectContaining({ id: "config-1", principal: "root" })]);
    expect(await tokens.principals()).toEqual([{ id: "root", name: "root" }]);
    for (const change of [
      () => tokens.revoke("config-1"),
      () => tokens.rotate("config-1", 0),
      () => tokens.deletePrincipal("root"),
      () => tokens.createPrincipal("root"),
    ]) {
      await expect(change()).rejects.toMatchObject(problem("conflict"));
    }
    expect((await tokens.create(user)).record.principal).toBe("ann");
  });

  it("a principal goes with its tokens", async () => {
    const { tokens, nameOf } = setUp();
    await tokens.create(admin);
    await tokens.createPrincipal("ann", "Ann of the lab");
    const made = [await tokens.create(user), await tokens.create(user)];
    expect((await tokens.principals()).map(({ id, name }) => `${id}: ${name}`)).toEqual([
      "ann: Ann of the lab",
      "root: root",
    ]);
    await tokens.deletePrincipal("ann");
    for (const { token } of made) expect(() => nameOf(token)).toThrow();
    await expect(tokens.deletePrincipal("ann")).rejects.toMatchObject(problem("not-found"));
  });

  it("makes the first token by itself once", async () => {
    const { tokens, nameOf } = setUp({ mayBeOpen: false });
    const kept: string[] = [];
    const keep = async (token: string): Promise<void> => void kept.push(token);
    await expect(tokens.createFirst("admin", () => Promise.reject(new Error("disk full")))).rejects.toThrow(
      "disk full",
    );
    expect(await tokens.list()).toEqual([]);
    const first = await tokens.createFirst("admin", keep);
    expect(kept).toEqual([first?.token]);
    expect(nameOf(first?.token ?? "")).toBe("admin");
    expect(await tokens.createFirst("admin", keep)).toBeUndefined();
    expect(kept).toHaveLength(1);
  });

  it.each([
    ["principal", { principal: "a b" }, "id"],
    ["principal", { principal: "" }, "id"],
    ["principal", { principal: "x".repeat(129) }, "id"],
    ["scopes", { scopes: [] }, "scopes"],
    ["models", { models: [""] }, "models"],
    ["expiry", { expiresAtMs: 1 }, "expires_at"],
    ["expiry", { expiresAtMs: Number.NaN }, "expires_at"],
    ["priority", { topPriority: 9 }, "limits.top_priority"],
    ["priority", { topPriority: 0.5 }, "limits.top_priority"],
    ["requests", { requestsPerMinute: -1 }, "limits.requests_per_minute"],
    ["tokens", { tokensPerMinute: 1.5 }, "limits.tokens_per_minute"],
    ["concurrency", { concurrency: Number.POSITIVE_INFINITY }, "limits.concurrency"],
    ["name", { name: "\u001b[2J" }, "name"],
  ])("refuses a wrong %s: %o", async (_name, changes, param) => {
    const { tokens } = setUp();
    await expect(tokens.create({ ...admin, ...changes })).rejects.toMatchObject(problem("invalid-request", { param }));
  });

  it.each([-1, Number.NaN, 31 * 24 * 3_600_000])("refuses a grace of %s ms", async (graceMs) => {
    const { tokens } = setUp();
    await expect(tokens.rotate("tok_x", graceMs)).rejects.toMatchObject(problem("invalid-request"));
  });
});
