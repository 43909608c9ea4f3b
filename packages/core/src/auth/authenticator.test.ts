import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { testSha256 } from "../testing/test-core.ts";
import { Authenticator, type TokenRecord } from "./authenticator.ts";
import { mayUseModel, requireScope } from "./principal.ts";

const clock = new ManualClock();
const record = (token: string, changes: Partial<TokenRecord> = {}): TokenRecord => ({
  principal: "ann",
  sha256: testSha256(token),
  scopes: ["read", "infer"],
  ...changes,
});

describe("authenticator", () => {
  it("is open without tokens: any header passes, fairness goes by the bearer, else by the address", () => {
    const open = new Authenticator([], testSha256, clock);
    const dummy = open.authenticate("dummy", "10.0.0.1");
    expect(dummy.principal.id).toBe("local");
    expect(open.authenticate("dummy", "10.0.0.2").fairnessKey).toBe(dummy.fairnessKey);
    expect(open.authenticate(undefined, "10.0.0.1").fairnessKey).toBe("peer:10.0.0.1");
    expect(dummy.fairnessKey).not.toContain("dummy");
  });

  it("several tokens speak for one principal", () => {
    const auth = new Authenticator([record("one"), record("two")], testSha256, clock);
    expect(auth.authenticate("one", "x")).toEqual(auth.authenticate("two", "x"));
  });

  it.each([[undefined], [""], ["wrong"], ["expired"]])("refuses %s", (token) => {
    const records = [record("right"), record("expired", { expiresAtMs: clock.now() })];
    const auth = new Authenticator(records, testSha256, clock);
    expect(() => auth.authenticate(token, "x")).toThrow(expect.objectContaining({ code: "unauthorized" }));
    expect(auth.authenticate("right", "x").principal.id).toBe("ann");
  });

  it("refuses a token that was good until it expired", () => {
    const ownClock = new ManualClock();
    const auth = new Authenticator([record("t", { expiresAtMs: ownClock.now() + 10 })], testSha256, ownClock);
    expect(auth.authenticate("t", "x").principal.id).toBe("ann");
    ownClock.advance(10);
    expect(() => auth.authenticate("t", "x")).toThrow(expect.objectContaining({ code: "unauthorized" }));
  });

  it("knows scopes and models", () => {
    const auth = new Authenticator([record("t", { models: ["llama*", "a.b"] })], testSha256, clock);
    const { principal } = auth.authenticate("t", "x");
    expect(() => requireScope(principal, "infer")).not.toThrow();
    expect(() => requireScope(principal, "manage")).toThrow(expect.objectContaining({ code: "forbidden" }));
    expect(["llama3:8b", "a.b", "axb", "other"].map((model) => mayUseModel(principal, model))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
