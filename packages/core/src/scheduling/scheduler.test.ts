import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { ageingMs } from "./pick-next.ts";
import { type Job, Scheduler } from "./scheduler.ts";

/** A scheduler whose jobs end when told. */
function setUp(capacity = 1, limits = { queued: 1_000, queuedPerKey: 1_000 }) {
  const clock = new ManualClock();
  const scheduler = new Scheduler(clock, limits);
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const submit = (name: string, changes: Partial<Job> = {}) =>
    scheduler.submit({
      lane: "lane",
      capacity: () => capacity,
      fairnessKey: "ann",
      priority: 0,
      run: () => {
        started.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      },
      ...changes,
    });
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await Promise.resolve();
    await Promise.resolve();
  };
  return { clock, scheduler, started, submit, end };
}

describe("scheduler", () => {
  it("starts up to the capacity and queues the rest in order of arrival", async () => {
    const { submit, started, end, scheduler } = setUp(2);
    for (const name of ["a", "b", "c", "d"]) submit(name);
    expect(started).toEqual(["a", "b"]);
    expect(scheduler.queued).toBe(2);
    await end("b");
    expect(started).toEqual(["a", "b", "c"]);
    await end("a");
    await end("c");
    await end("d");
    expect(scheduler).toMatchObject({ queued: 0, running: 0 });
  });

  it("lets 4 of one key start within 8 starts beside 60 of another", async () => {
    const { submit, started, end } = setUp(4);
    for (let index = 0; index < 60; index += 1) submit(`ann${index}`);
    for (let index = 0; index < 4; index += 1) submit(`bob${index}`, { fairnessKey: "bob" });
    for (let index = 0; index < 20; index += 1) await end(started[index] ?? "");
    const order = started.slice(4);
    for (let index = 0; index < 4; index += 1) expect(order.indexOf(`bob${index}`)).toBeLessThan(8);
    expect(order.filter((name) => name.startsWith("ann"))).toEqual(
      order.filter((name) => name.startsWith("ann")).sort((a, b) => Number(a.slice(3)) - Number(b.slice(3))),
    );
  });

  it("a job whose priority changes is served by the new one, and keeps the time that it has waited", async () => {
    const { clock, submit, started, end } = setUp(1);
    submit("running");
    const low = submit("low", { priority: -8 });
    clock.advance(3 * ageingMs);
    submit("high", { priority: 2 });
    submit("normal");
    low.changePriority(-1);
    await end("running");
    expect(started.at(-1)).toBe("low");
    await end("low");
    expect(started.at(-1)).toBe("high");
    low.changePriority(8);
    expect(low.withdraw()).toBe(false);
  });

  it("a key that comes back neither owes nor is owed the past", async () => {
    const { submit, started, end } = setUp(1);
    for (let index = 0; index < 10; index += 1) submit(`ann${index}`);
    for (let index = 0; index < 5; index += 1) await end(`ann${index}`);
    for (let index = 0; index < 5; index += 1) submit(`bob${index}`, { fairnessKey: "bob" });
    for (let index = 5; index < 9; index += 1) await end(started.at(-1) ?? "");
    expect(started.slice(6)).toHaveLength(4);
    expect(started.slice(6).filter((name) => name.startsWith("bob"))).toHaveLength(2);
  });

  it("serves the higher priority first, and waiting raises it", async () => {
    const { submit, started, end, clock } = setUp(1);
    submit("running");
    submit("low", { priority: -1 });
    submit("high", { priority: 1 });
    await end("running");
    expect(started.at(-1)).toBe("high");
    clock.advance(3 * ageingMs);
    submit("late", { priority: 1 });
    await end("high");
    expect(started.at(-1)).toBe("low");
  });

  it("stays fair between keys of one priority, however long the queue is", async () => {
    const { submit, started, end, clock } = setUp(1);
    for (let index = 0; index < 20; index += 1) submit(`ann${index}`);
    clock.advance(5 * ageingMs);
    for (let index = 0; index < 2; index += 1) submit(`bob${index}`, { fairnessKey: "bob" });
    for (let index = 0; index < 5; index += 1) await end(started.at(-1) ?? "");
    expect(started.slice(1, 5).filter((name) => name.startsWith("bob"))).toHaveLength(2);
  });

  it("a full queue refuses nothing that would start at once", () => {
    const { submit, started } = setUp(1, { queued: 0, queuedPerKey: 0 });
    submit("a");
    expect(() => submit("b")).toThrow(expect.objectContaining({ code: "overloaded" }));
    submit("c", { lane: "other" });
    expect(started).toEqual(["a", "c"]);
  });

  it("refuses past the bound, in total and for one key, and has room again after a withdrawal", () => {
    const { submit, scheduler } = setUp(1, { queued: 3, queuedPerKey: 2 });
    submit("running");
    const job = submit("a");
    submit("b");
    expect(() => submit("c")).toThrow(
      expect.objectContaining({ code: "overloaded", details: { limit: 2, retryAfterMs: 1_000 } }),
    );
    submit("d", { fairnessKey: "bob" });
    expect(() => submit("e", { fairnessKey: "eve" })).toThrow(expect.objectContaining({ code: "overloaded" }));
    expect(job.withdraw()).toBe(true);
    expect(job.withdraw()).toBe(false);
    expect(scheduler.queued).toBe(2);
    submit("c");
  });

  it("tells the place in the queue as it changes", async () => {
    const { submit, end } = setUp(1);
    submit("running");
    const places: number[] = [];
    submit("a");
    submit("b", { onPosition: (position) => places.push(position) });
    await end("running");
    expect(places).toEqual([2, 1]);
  });

  it("tells each place once, with the wait that the lane's own times let expect", async () => {
    const { clock, submit, end } = setUp(2);
    const told: string[] = [];
    const waiting = (name: string) => ({
      onPosition: (position: number, waitMs: number | undefined) => void told.push(`${name} ${position} ${waitMs}`),
    });
    submit("a");
    submit("b");
    for (const name of ["c", "d", "e"]) submit(name, waiting(name));
    expect(told.splice(0)).toEqual(["c 1 undefined", "d 2 undefined", "e 3 undefined"]);
    clock.advance(1_000);
    await end("a");
    expect(told.splice(0)).toEqual(["d 1 500", "e 2 1000"]);
    clock.advance(1_000);
    await end("c");
    expect(told.splice(0)).toEqual(["e 1 500"]);
    submit("f", waiting("f"));
    expect(told.splice(0)).toEqual(["f 2 1000"]);
  });

  it("a full queue says when its lane takes the next one", async () => {
    const { clock, scheduler, submit, end } = setUp(1, { queued: 1, queuedPerKey: 1 });
    submit("a");
    submit("b");
    const refusal = () => {
      try {
        submit("more");
      } catch (error) {
        return error;
      }
      return undefined;
    };
    expect(refusal()).toMatchObject({ code: "overloaded", details: { limit: 1, retryAfterMs: 1_000 } });
    clock.advance(7_000);
    await end("a");
    submit("c");
    expect(refusal()).toMatchObject({ code: "overloaded", details: { retryAfterMs: 7_000 } });
    expect(scheduler.queued).toBe(1);
  });
});
