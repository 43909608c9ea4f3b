import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ManualClock } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import type { SqliteStorage } from "./index.ts";
import { storages } from "./testing/fixtures.ts";
import { clientText, completed, delta, ended, limits, modelText, record } from "./testing/fixtures-data.ts";

const { file: freshFile, open } = storages();

/** A stored response whose answer came in pieces, up to its end or not. */
async function answer(storage: SqliteStorage, id: string, pieces: number, isEnded = true): Promise<void> {
  const { log, responses } = storage;
  const first = record(id);
  log.open(id, 1, { isDurable: true });
  await responses.put(first);
  let last = 0;
  for (let piece = 0; piece < pieces; piece += 1) last = log.append(id, 1, last, [delta(`${piece} `)]);
  if (isEnded) last = log.append(id, 1, last, [completed(first)]);
  await log.committed(id, last);
  if (isEnded) await responses.put(ended(first));
}

async function bytesOnDisk(file: string): Promise<string> {
  const names = await readdir(dirname(file));
  const contents = await Promise.all(names.map((name) => readFile(join(dirname(file), name), "latin1")));
  return contents.join("");
}

describe("after a restart", () => {
  it("a stored response and its events are as they were", async () => {
    const file = await freshFile();
    const roomy = { bytesPerResponse: 10_000_000, bytesTotal: 20_000_000 };
    const before = await open({ file, ...roomy });
    await answer(before, "resp_a", 5000);
    const whole = await before.responses.get("resp_a");
    const entries = before.log.read("resp_a", { after: 0, visibility: "live" }).take();
    await before.close();
    const after = await open({ file, ...roomy });
    expect(await after.responses.get("resp_a")).toEqual(whole);
    expect(after.log.extent("resp_a")).toBeUndefined();
    expect(await Promise.all([after.log.recall("resp_a"), after.log.recall("resp_a")])).toEqual([true, true]);
    expect(await after.log.recall("resp_b")).toBe(false);
    expect(after.log.extent("resp_a")).toMatchObject({ first: 1, last: 5001, ended: true });
    for (const place of [0, 1, 1999, 2000, 2001, 5000, 5001]) {
      const reader = after.log.read("resp_a", { after: place, visibility: "committed" });
      expect(reader.take()).toEqual(entries.slice(place));
    }
  });

  it("an unfinished stored one is told, and its log goes on where it stood", async () => {
    const file = await freshFile();
    const before = await open({ file });
    for (const id of ["resp_z", "resp_a"]) await answer(before, id, 3, false);
    await answer(before, "resp_done", 3);
    await before.close();
    const after = await open({ file });
    const unfinished = await after.responses.unfinished();
    expect(unfinished.map(({ response }) => response.id)).toEqual(["resp_z", "resp_a"]);
    await after.log.recall("resp_z");
    after.log.open("resp_z", 2, { isDurable: true });
    await after.log.committed("resp_z", after.log.append("resp_z", 2, 3, [completed(record("resp_z"))]));
    await after.responses.put(ended(record("resp_z", { epoch: 2 })));
    await after.close();
    const third = await open({ file });
    expect((await third.responses.unfinished()).map(({ response }) => response.id)).toEqual(["resp_a"]);
    await third.log.recall("resp_z");
    expect(third.log.extent("resp_z")).toMatchObject({ first: 1, last: 4, ended: true });
  });

  it("one that was not to be stored is a stub; unfinished it is interrupted", async () => {
    const file = await freshFile();
    const before = await open({ file });
    const unstored = (id: string) => record(id, { request: { store: false } });
    await before.responses.put(unstored("resp_runs"));
    await before.responses.put(ended(unstored("resp_quick")));
    await before.responses.put(unstored("resp_done"));
    // It is written once it has run for half a second.
    await new Promise((resolve) => setTimeout(resolve, 700));
    await before.responses.put(ended(unstored("resp_done")));
    before.log.open("resp_done", 1);
    before.log.append("resp_done", 1, 0, [delta(modelText)]);
    expect((await before.responses.get("resp_done"))?.response.output).toHaveLength(1);
    await before.close();
    expect(await bytesOnDisk(file)).not.toMatch(new RegExp(`${clientText}|${modelText}`));
    const after = await open({ file });
    const done = await after.responses.get("resp_done");
    expect(done).toMatchObject({ owner: "ann", response: { status: "completed", output: [], finishedAt: 5_000 } });
    const runs = await after.responses.get("resp_runs");
    expect(runs?.response).toMatchObject({ status: "failed", problem: { code: "interrupted" } });
    expect(await after.responses.get("resp_quick")).toBeUndefined();
    expect(await after.responses.unfinished()).toEqual([]);
    expect(await after.log.recall("resp_done")).toBe(false);
  });

  it("with content: never nothing of a text is on disk, though it can be read while the service runs", async () => {
    const file = await freshFile();
    const storage = await open({ file, content: "never" });
    expect(storage.keepsContent).toBe(false);
    await answer(storage, "resp_a", 3);
    expect((await storage.responses.get("resp_a"))?.request.input).toMatchObject({ kind: "items" });
    expect(storage.log.read("resp_a", { after: 0, visibility: "live" }).take()).toHaveLength(4);
    await storage.close();
    const bytes = await bytesOnDisk(file);
    expect(bytes).toContain("resp_a");
    expect(bytes).not.toMatch(new RegExp(`${clientText}|${modelText}|msg_a_0`));
  });

  it("the head that memory has let go is gone on disk, too", async () => {
    const file = await freshFile();
    const storage = await open({ file, bytesPerResponse: 20_000 });
    await answer(storage, "resp_a", 500);
    const extent = storage.log.extent("resp_a");
    await storage.close();
    const after = await open({ file, bytesPerResponse: 20_000 });
    await after.log.recall("resp_a");
    expect(after.log.extent("resp_a")).toMatchObject({ last: 501, ended: true });
    expect(after.log.extent("resp_a")?.first).toBeLessThanOrEqual(extent?.first ?? 0);
    expect(after.log.extent("resp_a")?.first).toBeGreaterThan(1);
  });

  it("a deleted response leaves nothing", async () => {
    const file = await freshFile();
    const storage = await open({ file });
    await answer(storage, "resp_a", 3);
    storage.log.drop("resp_a");
    await storage.responses.delete("resp_a");
    expect(await storage.log.recall("resp_a")).toBe(false);
    await storage.responses.put(record("resp_a"));
    expect((await storage.responses.get("resp_a"))?.response.status).toBe("queued");
    await storage.close();
    const after = await open({ file });
    expect((await after.responses.get("resp_a"))?.response.status).toBe("queued");
    expect(await after.log.recall("resp_a")).toBe(false);
  });
});

describe("committed readers", () => {
  it("get nothing before it is written, and then all of it", async () => {
    const { log } = await open();
    log.open("resp_a", 1, { isDurable: true });
    const reader = log.read("resp_a", { after: 0, visibility: "committed" });
    const live = log.read("resp_a", { after: 0, visibility: "live" });
    const last = log.append("resp_a", 1, 0, [delta("a"), delta("b"), completed(record("resp_a"))]);
    expect(live.take()).toHaveLength(3);
    expect(reader.take()).toEqual([]);
    expect(reader.ended).toBe(false);
    const readable = new Promise<void>((resolve) => reader.onReadable(resolve));
    await readable;
    await log.committed("resp_a", last);
    expect(reader.take(1)).toHaveLength(1);
    expect(reader.take()).toHaveLength(2);
    expect(reader.ended).toBe(true);
  });

  it("end when the log is dropped before it was written", async () => {
    const { log } = await open();
    log.open("resp_a", 1, { isDurable: true });
    const reader = log.read("resp_a", { after: 0, visibility: "committed" });
    log.append("resp_a", 1, 0, [delta("a")]);
    log.drop("resp_a");
    expect(reader.take()).toHaveLength(1);
    expect(reader.ended).toBe(true);
  });
});

describe("retention", () => {
  const hour = 3_600_000;

  async function kept(storage: SqliteStorage, id: string): Promise<readonly [record: boolean, events: boolean]> {
    return [(await storage.responses.get(id)) !== undefined, await storage.log.recall(id)];
  }

  async function fill(storage: SqliteStorage, now: number): Promise<void> {
    for (const [id, background] of [
      ["resp_fore", false],
      ["resp_back", true],
    ] as const) {
      const first = record(id, { request: { background }, response: { createdAt: now } });
      storage.log.open(id, 1, { isDurable: true });
      await storage.log.committed(id, storage.log.append(id, 1, 0, [completed(first)]));
      await storage.responses.put(ended(first, now));
    }
  }

  it("events go after an hour, stored responses with them, background ones after their own time", async () => {
    const clock = new ManualClock();
    const storage = await open({ clock, elapsedMs: () => clock.now(), taskRetentionMs: 5 * hour });
    await fill(storage, clock.now());
    clock.advance(hour - 1);
    await storage.sweep();
    expect(await kept(storage, "resp_fore")).toEqual([true, true]);
    clock.advance(1);
    await storage.sweep();
    expect(await kept(storage, "resp_fore")).toEqual([false, false]);
    expect(await kept(storage, "resp_back")).toEqual([true, false]);
    clock.advance(4 * hour);
    await storage.sweep();
    expect(await kept(storage, "resp_back")).toEqual([false, false]);
  });

  it.each([
    ["forward", 1000 * hour],
    ["back", -1000 * hour],
  ])("a clock that jumps %s ends nothing", async (_direction, jumpMs) => {
    let elapsed = 0;
    let now = 1_700_000_000_000;
    const clock = { now: () => now, after: () => () => {} };
    const storage = await open({ clock, elapsedMs: () => elapsed });
    await fill(storage, now);
    now += jumpMs;
    await storage.sweep();
    expect(await kept(storage, "resp_fore")).toEqual([true, true]);
    elapsed += hour;
    now += hour;
    await storage.sweep();
    expect(await kept(storage, "resp_fore")).toEqual([false, false]);
  });

  it("the oldest ended ones go when the file reaches its cap; what runs stays", async () => {
    const maxBytes = 1_000_000;
    const storage = await open({ maxBytes });
    const big = { request: { instructions: "x".repeat(20_000) } };
    await storage.responses.put(record("resp_runs", big));
    const finished = (index: number) =>
      storage.responses.put(
        ended(record(`resp_${index}`, { ...big, response: { createdAt: index } }), Date.now() + index - 1000),
      );
    for (let tens = 0; tens < 200; tens += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, one) => finished(tens + one)));
    }
    await storage.sweep();
    expect(storage.writeFault).toBeUndefined();
    expect(await storage.responses.get("resp_runs")).toBeDefined();
    expect(await storage.responses.get("resp_199")).toBeDefined();
    expect(await storage.responses.get("resp_0")).toBeUndefined();
  });

  it("refuses what is new when what runs fills the cap, goes on in memory, and writes it all when there is room", async () => {
    const file = await freshFile();
    const faults: (string | undefined)[] = [];
    const storage = await open({ file, maxBytes: 1_000_000, onFault: (fault) => faults.push(fault) });
    const big = (id: string) => record(id, { request: { background: true, instructions: "x".repeat(100_000) } });
    let refused: unknown;
    let count = 0;
    for (; refused === undefined && count < 20; count += 1) {
      refused = await storage.responses.put(big(`resp_${count}`)).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    expect(refused).toMatchObject({ code: "insufficient-storage" });
    expect(storage.writeFault).toContain(file);
    const task = {
      id: "task_a",
      kind: "batch",
      owner: "ann",
      fairnessKey: "",
      request: "x".repeat(200_000),
      state: "queued",
      attempt: 1,
      createdAt: 1,
    } as const;
    await expect(storage.tasks.put(task)).rejects.toMatchObject({ code: "insufficient-storage" });
    storage.log.open("resp_0", 1, { isDurable: true });
    const reader = storage.log.read("resp_0", { after: 0, visibility: "live" });
    const last = storage.log.append("resp_0", 1, 0, [delta("goes on")]);
    expect(reader.take()).toHaveLength(1);
    await expect(storage.log.committed("resp_0", last)).rejects.toMatchObject({ code: "insufficient-storage" });
    for (let index = 0; index < 5; index += 1) await storage.responses.delete(`resp_${index + 1}`);
    await expect.poll(() => storage.writeFault, { timeout: 10_000 }).toBeUndefined();
    await storage.log.committed("resp_0", last);
    await storage.tasks.put(task);
    expect(faults.length).toBeGreaterThanOrEqual(2);
    await storage.close();
    const after = await open({ file, maxBytes: 0 });
    expect(await after.log.recall("resp_0")).toBe(true);
    expect(await after.responses.get(`resp_${count - 1}`)).toBeDefined();
    expect(await after.tasks.get("task_a")).toEqual(task);
  });
});

it("keeps what comes while it closes", async () => {
  const file = await freshFile();
  const storage = await open({ file, ...limits });
  storage.log.open("resp_a", 1, { isDurable: true });
  void storage.responses.put(record("resp_a"));
  let last = 0;
  for (let piece = 0; piece < 10_000; piece += 1) last = storage.log.append("resp_a", 1, last, [delta("x")]);
  await storage.close();
  await expect(storage.tasks.get("task_a")).rejects.toMatchObject({ code: "insufficient-storage" });
  const after = await open({ file });
  await after.log.recall("resp_a");
  expect(after.log.extent("resp_a")?.last).toBe(10_000);
});
