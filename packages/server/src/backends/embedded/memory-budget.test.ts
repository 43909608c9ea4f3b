import { expect, test } from "vitest";
import { MemoryBudget, type Resident } from "./memory-budget.ts";

class Model implements Resident {
  readonly name: string;
  residentBytes: number | undefined;
  isIdle: boolean;
  lastUsedMs: number;
  readonly #onEvict: () => void;

  constructor(name: string, bytes: number | undefined, isIdle: boolean, lastUsedMs: number, onEvict: () => void) {
    this.name = name;
    this.residentBytes = bytes;
    this.isIdle = isIdle;
    this.lastUsedMs = lastUsedMs;
    this.#onEvict = onEvict;
  }

  async evict(): Promise<void> {
    if (!this.isIdle) throw new Error(`${this.name} is in use`);
    this.residentBytes = undefined;
    this.isIdle = false;
    this.#onEvict();
  }
}

function setUp(
  limitBytes: number,
  loaded: readonly (readonly [string, number, "idle" | "busy", number?])[],
  free = 1e12,
) {
  const evicted: string[] = [];
  const models = loaded.map(
    ([name, bytes, state, used = 0]) => new Model(name, bytes, state === "idle", used, () => evicted.push(name)),
  );
  const fresh = (name: string) => {
    const model = new Model(name, undefined, false, 0, () => evicted.push(name));
    models.push(model);
    return model;
  };
  const budget = new MemoryBudget({ limitBytes, freeBytes: () => free, residents: () => models, onEvict: () => {} });
  return { budget, evicted, fresh, models };
}

test("what fits is let in, and nothing goes", async () => {
  const { budget, evicted, fresh } = setUp(100, [["a", 40, "idle"]]);
  await budget.reserve(fresh("new"), 60);
  expect(evicted).toEqual([]);
});

test("idle models go, longest unused first, and no more than needed", async () => {
  const { budget, evicted, fresh } = setUp(100, [
    ["newest", 30, "idle", 3],
    ["oldest", 30, "idle", 1],
    ["middle", 30, "idle", 2],
  ]);
  await budget.reserve(fresh("new"), 60);
  expect(evicted).toEqual(["oldest", "middle"]);
});

test("a model in use never goes; what would not fit anyway evicts nobody, and the numbers say why", async () => {
  const { budget, evicted, fresh } = setUp(100, [
    ["busy", 50, "busy", 1],
    ["idle", 30, "idle", 2],
  ]);
  await expect(budget.reserve(fresh("new"), 60)).rejects.toMatchObject({
    code: "insufficient-memory",
    details: { model: "new", limit: 50, requested: 60 },
  });
  expect(evicted).toEqual([]);
  await budget.reserve(fresh("other"), 50);
  expect(evicted).toEqual(["idle"]);
});

test("what is free counts as much as the budget", async () => {
  const { budget, evicted, fresh } = setUp(1000, [["idle", 30, "idle"]], 40);
  await expect(budget.reserve(fresh("large"), 80)).rejects.toMatchObject({ details: { limit: 70, requested: 80 } });
  await budget.reserve(fresh("small"), 40);
  expect(evicted).toEqual([]);
});

test("one that loads counts with its estimate, and is waited for", async () => {
  const { budget, evicted, fresh } = setUp(100, []);
  const [first, second] = [fresh("first"), fresh("second")];
  const loaded = await budget.reserve(first, 60);
  const order: string[] = [];
  const waiting = budget.reserve(second, 60).then(() => order.push("second"));
  await Promise.resolve();
  order.push("first");
  Object.assign(first, { residentBytes: 55, isIdle: true });
  loaded();
  await waiting;
  expect(order).toEqual(["first", "second"]);
  expect(evicted).toEqual(["first"]);
});

test("one that loads and then is used leaves no room", async () => {
  const { budget, fresh } = setUp(100, []);
  const first = fresh("first");
  const loaded = await budget.reserve(first, 60);
  const waiting = budget.reserve(fresh("second"), 60);
  Object.assign(first, { residentBytes: 55 });
  loaded();
  await expect(waiting).rejects.toMatchObject({ details: { limit: 45, requested: 60 } });
});

test("one that failed to load leaves its room; a refusal does not hold up the next", async () => {
  const { budget, fresh } = setUp(100, []);
  const failed = await budget.reserve(fresh("first"), 60);
  const refused = budget.reserve(fresh("huge"), 200);
  const next = budget.reserve(fresh("second"), 100);
  failed();
  await expect(refused).rejects.toMatchObject({ detail: expect.stringContaining("of a budget of 0 MB") });
  await next;
});
