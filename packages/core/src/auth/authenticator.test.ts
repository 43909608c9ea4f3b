import { describe, expect, it } from "vitest";
import { MemoryBus } from "../memory/bus.ts";
import { MemoryTokenStore } from "../memory/token-store.ts";
import type { TokenRecord } from "../ports/token-store.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { testSha256 } from "../testing/test-core.ts";
import { Authenticator } from "./authenticator.ts";
import { mayUseModel, requireScope } from "./principal.ts";

const record = (token: string, changes: Partial<TokenRecord> = {}): TokenRecord => ({
  id: `tok_${token}`,
  principal: "ann",
  sha256: testSha256(token),
  scopes: ["read", "infer"],
  createdAt: 0,
  ...changes,
});

/** Each replica has its own authenticator over the same store. */
function setUp(fixed: readonly TokenRecord[] = [], mayBeOpen = true) {
  const clock = new ManualClock();
  const bus = new MemoryBus();
  const store = new MemoryTokenStore();
  const replica = () =>
    new Authenticator({
      fixed,
      store,
      bus,
      clock,
      sha256: testSha256,
      mayBeOpen,
      onFault: (fault) => expect.unreachable(String(fault)),
    });
  return { clock, bus, store, replica, auth: replica() };
}

const unauthorized = expect.objectContaining({ code: "unauthorized" });
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

describe("authenticator", () => {
  it("is open without tokens: any header passes, fairness goes by the bearer, else by the address", () => {
    const { auth } = setUp();
    const dummy = auth.authenticate("dummy", "10.0.0.1");
    expect(dummy.principal.id).toBe("local");
    expect(auth.authenticate("dummy", "10.0.0.2").fairnessKey).toBe(dummy.fairnessKey);
    expect(auth.authenticate(undefined, "10.0.0.1").fairnessKey).toBe("peer:10.0.0.1");
    expect(dummy.fairnessKey).not.toContain("dummy");
  });

  it("is never open where strangers can reach it", () => {
    const { auth } = setUp([], false);
    expect(auth.isRequired).toBe(true);
    expect(() => auth.authenticate(undefined, "x")).toThrow(unauthorized);
    expect(() => auth.authenticate("dummy", "x")).toThrow(unauthorized);
  });

  it("several tokens speak for one principal, each within its own limits", () => {
    const { auth } = setUp([record("one"), record("two", { requestsPerMinute: 3, concurrency: 1 })]);
    const [one, two] = [auth.authenticate("one", "x"), auth.authenticate("two", "x")];
    expect(one.principal).toEqual(two.principal);
    expect(one.quota).toBeUndefined();
    expect(two.quota).toEqual({ key: "tok_two", requestsPerMinute: 3, concurrency: 1 });
    expect(auth.authenticate("two", "y")).toBe(two);
  });

  it.each([[undefined], [""], ["wrong"], ["expired"]])("refuses %s", (token) => {
    const { auth } = setUp([record("right"), record("expired", { expiresAtMs: 1 })]);
    expect(() => auth.authenticate(token, "x")).toThrow(unauthorized);
    expect(auth.authenticate("right", "x").principal.id).toBe("ann");
  });

  it("refuses a token that was good until it expired, and ends what is open with it", () => {
    const { clock } = setUp();
    const expiresAtMs = clock.now() + 10;
    const { auth, clock: ownClock } = setUp([record("t", { expiresAtMs }), record("later", { expiresAtMs: 2e12 })]);
    const caller = auth.authenticate("t", "x");
    let ended = 0;
    auth.watch(caller, () => {
      ended += 1;
    });
    const forget = auth.watch(caller, () => expect.unreachable("it was forgotten"));
    auth.watch(auth.authenticate("later", "x"), () => expect.unreachable("it is still good"));
    forget();
    ownClock.advance(9);
    expect(auth.authenticate("t", "x").principal.id).toBe("ann");
    expect(ended).toBe(0);
    ownClock.advance(1);
    expect(ended).toBe(1);
    expect(() => auth.authenticate("t", "x")).toThrow(unauthorized);
  });

  it("knows a kept token on every replica from the notification on, and forgets it likewise", async () => {
    const { store, bus, replica, auth } = setUp();
    const other = replica();
    await store.putToken(record("t"));
    expect(other.isRequired).toBe(false);
    bus.publish("tokens.changed", "tok_t");
    await settle();
    const caller = other.authenticate("t", "x");
    expect(auth.isRequired && other.isRequired).toBe(true);
    expect(() => other.authenticate(undefined, "x")).toThrow(unauthorized);
    let ended = 0;
    other.watch(caller, () => {
      ended += 1;
    });
    await store.putToken(record("u"));
    bus.publish("tokens.changed", "tok_u");
    await settle();
    expect(ended).toBe(0);
    expect(other.authenticate("t", "x")).toBe(caller);
    await store.deleteToken("tok_t");
    bus.publish("tokens.changed", "tok_t");
    await settle();
    expect(ended).toBe(1);
    expect(() => other.authenticate("t", "x")).toThrow(unauthorized);
    expect(() => auth.authenticate("t", "x")).toThrow(unauthorized);
  });

  it("a change during a read is read, too", async () => {
    const { store, auth } = setUp();
    await store.putToken(record("a"));
    const first = auth.reload();
    await store.putToken(record("b"));
    await Promise.all([auth.reload(), first]);
    expect(auth.authenticate("b", "x").principal.id).toBe("ann");
  });

  it("finds a change whose notification was lost", async () => {
    const { store, clock, auth } = setUp();
    await auth.load();
    await store.putToken(record("t"));
    clock.advance(30_000);
    await settle();
    expect(auth.authenticate("t", "x").principal.id).toBe("ann");
    await auth.close();
    expect(clock.pending).toBe(0);
  });

  it("new rights count from the next request on, old callers stay watched", async () => {
    const { store, auth } = setUp();
    await store.putToken(record("t"));
    await auth.reload();
    const before = auth.authenticate("t", "x");
    let ended = 0;
    auth.watch(before, () => {
      ended += 1;
    });
    await store.putToken(record("t", { scopes: ["read"] }));
    await auth.reload();
    expect([...auth.authenticate("t", "x").principal.scopes]).toEqual(["read"]);
    expect(ended).toBe(0);
    await store.deleteToken("tok_t");
    await auth.reload();
    expect(ended).toBe(1);
  });

  it("notes the use of a kept token at most every 5 s, and keeps its callers when it reads them again", async () => {
    const { store, clock, auth } = setUp([record("fixed", { id: "config-1" })]);
    await store.putToken(record("t"));
    await auth.reload();
    const touched: number[] = [];
    const touch = store.touch.bind(store);
    store.touch = (uses) => {
      touched.push(...uses.values());
      return touch(uses);
    };
    const start = clock.now();
    auth.authenticate("fixed", "x");
    for (let second = 0; second < 12; second += 1) {
      auth.authenticate("t", "x");
      clock.advance(1_000);
    }
    expect(touched).toEqual([start, start + 5_000, start + 10_000]);
    const caller = auth.authenticate("t", "x");
    await auth.reload();
    expect(auth.authenticate("t", "x")).toBe(caller);
    expect((await store.tokens())[0]?.lastUsedAt).toBe(start + 10_000);
  });

  it("knows scopes and models", () => {
    const { auth } = setUp([record("t", { models: ["llama*", "a.b"] })]);
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
