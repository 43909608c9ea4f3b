import { describe, expect, it } from "vitest";
import { MemoryIdempotencyStore } from "../memory/idempotency-store.ts";
import { randomIds } from "../memory/ids.ts";
import type { ProblemCode } from "../problems/table.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { testSha256 } from "../testing/test-core.ts";
import { Idempotency, isVoidResponse, type KeyedKind } from "./idempotency.ts";
import type { Response } from "./response.ts";

const request = { principal: "ann", door: "lmsp", key: "k", path: "/p", body: "{}" } as const;

/** Things by their ids; a false one is void. */
function setUp() {
  const clock = new ManualClock();
  const store = new MemoryIdempotencyStore();
  const idempotency = new Idempotency({
    store,
    clock,
    ids: randomIds,
    sha256: testSha256,
    onFault: (fault) => expect.unreachable(String(fault)),
  });
  const things = new Map<string, boolean>();
  const kind: KeyedKind<boolean> = {
    prefix: "thing_",
    find: async (id) => things.get(id),
    isVoid: (thing) => !thing,
  };
  const use = (changes: Partial<typeof request> | Record<string, string> = {}) =>
    idempotency.use({ ...request, ...changes }, kind);
  /** As a request that is accepted. */
  const make = async (isGood: boolean, changes: Record<string, string> = {}) => {
    const used = await use(changes);
    if (used.isFirst) things.set(`thing_${used.x}`, isGood);
    return used;
  };
  return { clock, store, things, use, make };
}

describe("idempotency keys", () => {
  it("one of many requests at once makes the thing; the others wait for it or get it", async () => {
    const { use, make } = setUp();
    const first = make(true);
    const others = await Promise.allSettled(Array.from({ length: 10 }, () => use()));
    expect((await first).isFirst).toBe(true);
    for (const other of others) {
      expect(other.status === "rejected" ? other.reason : other.value).toMatchObject(
        other.status === "rejected" ? { code: "idempotency-in-progress" } : { isFirst: false, thing: true },
      );
    }
    expect(await use()).toEqual({ isFirst: false, thing: true });
  });

  it.each([
    ["body", { body: "[]" }],
    ["path", { path: "/q" }],
  ])("another %s under the same key is refused", async (_name, changes) => {
    const { use, make } = setUp();
    await make(true);
    await expect(use(changes)).rejects.toMatchObject({ code: "idempotency-mismatch" });
  });

  it.each([{ principal: "bob" }, { door: "openai" }, { key: "k2" }, { principal: '"ann","lmsp"', key: "" }])(
    "keys of others are others: %o",
    async (changes) => {
      const { make } = setUp();
      await make(true);
      expect((await make(true, changes)).isFirst).toBe(true);
    },
  );

  it("a released key is free; a release that comes too late frees nobody else's", async () => {
    const { use, make } = setUp();
    const first = await use();
    if (!first.isFirst) throw new Error("the key was free");
    await first.release();
    expect((await make(true, { body: "other" })).isFirst).toBe(true);
    await first.release();
    expect(await use({ body: "other" })).toMatchObject({ isFirst: false });
  });

  it("what is void is made anew, once", async () => {
    const { make, use } = setUp();
    await make(false);
    const again = await Promise.allSettled([make(true), make(true), make(true)]);
    expect(
      again.filter(({ status, ...rest }) => status === "fulfilled" && "value" in rest && rest.value.isFirst),
    ).toHaveLength(1);
    expect(await use()).toEqual({ isFirst: false, thing: true });
  });

  it("what is gone is made anew, but not while it may still come", async () => {
    const { clock, use, make } = setUp();
    await use();
    await expect(use()).rejects.toMatchObject({ code: "idempotency-in-progress" });
    clock.advance(59_999);
    await expect(use()).rejects.toMatchObject({ code: "idempotency-in-progress" });
    clock.advance(1);
    expect((await make(true)).isFirst).toBe(true);
  });

  it("a key is kept for a day", async () => {
    const { clock, use, make, store } = setUp();
    await make(true);
    clock.advance(24 * 3_600_000 - 1);
    expect((await use()).isFirst).toBe(false);
    clock.advance(1);
    const swept: number[] = [];
    const sweep = store.sweep.bind(store);
    store.sweep = (now) => {
      swept.push(now);
      return sweep(now);
    };
    expect((await use()).isFirst).toBe(true);
    expect(swept).toEqual([]);
    clock.advance(600_000);
    await use({ key: "other" });
    expect(swept).toEqual([clock.now()]);
  });
});

const failed = (code: ProblemCode, changes: Partial<Response> = {}, reason?: string): Pick<Response, "problem"> => ({
  problem: { code, detail: "", details: reason === undefined ? {} : { reason } },
  ...changes,
});

it.each([
  ["completed", { startedAt: 1 }, false],
  ["failed before it started", failed("backend-error"), true],
  ["failed while it ran", failed("backend-error", { startedAt: 1 }), false],
  ["interrupted", failed("interrupted", { startedAt: 1 }), true],
  ["lost by its client", failed("cancelled", { startedAt: 1 }, "disconnected"), true],
  ["cancelled on request", failed("cancelled", { startedAt: 1 }, "requested"), false],
  ["cancelled while it waited", failed("cancelled", {}, "requested"), true],
])("a response that was %s leaves its key free: %o %s", (_name, response, isVoid) => {
  expect(isVoidResponse(response as Response)).toBe(isVoid);
});
