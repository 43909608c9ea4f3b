import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { createMemoryStorage, type ResponseEvent, type Storage } from "@plenum/core";
import { openSqliteStorage } from "../../packages/server/src/store/sqlite/index.ts";
import { median } from "../statistics.ts";
import type { Figure, Part } from "./part.ts";

const limits = { bytesPerResponse: 64_000_000, bytesTotal: 512_000_000 };
const rounds = 5;
const eventsPerLog = 10_000;
/** As in a busy service: so many answers at once, so many tokens a second each, for so long. */
const streams = 100;
const tokensPerSecond = 50;
const streamMs = 4_000;
const tasks = 1_000;
const tasksAtOnce = 32;

const event: ResponseEvent = {
  type: "response.output_text.delta",
  atMs: 1234,
  itemId: "msg_0123456789abcdefghijklmn_0",
  index: 0,
  delta: " token",
};

let logs = 0;

/** Nanoseconds that one append of one event takes its caller. */
async function appendCost({ log }: Storage): Promise<number> {
  const costs: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    logs += 1;
    const id = `resp_${logs}`;
    log.open(id, 1, { isDurable: true });
    const startedAt = performance.now();
    let last = 0;
    while (last < eventsPerLog) last = log.append(id, 1, last, [event]);
    if (round >= 0) costs.push(((performance.now() - startedAt) * 1e6) / eventsPerLog);
    await log.committed(id, last);
    log.drop(id);
  }
  return Math.round(median(costs));
}

/** Delay of the event loop while answers stream; undefined: while nothing happens. */
async function loopDelay(storage: Storage | undefined): Promise<{ readonly p99: number; readonly max: number }> {
  const ids = Array.from({ length: streams }, (_, index) => `resp_delay_${index}`);
  for (const id of ids) storage?.log.open(id, 1, { isDurable: true });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const until = performance.now() + streamMs;
  for (let last = 0; performance.now() < until; last += 1) {
    for (const id of ids) storage?.log.append(id, 1, last, [event]);
    await wait(1000 / tokensPerSecond);
  }
  delay.disable();
  const milliseconds = (nanoseconds: number): number => Number((nanoseconds / 1e6).toFixed(2));
  return { p99: milliseconds(delay.percentile(99)), max: milliseconds(delay.max) };
}

async function recallCost(open: () => Promise<Storage>): Promise<number> {
  const before = await open();
  before.log.open("resp_recalled", 1, { isDurable: true });
  let last = 0;
  while (last < eventsPerLog) last = before.log.append("resp_recalled", 1, last, [event]);
  await before.log.committed("resp_recalled", last);
  await before.close();
  const after = await open();
  const startedAt = performance.now();
  await after.log.recall("resp_recalled");
  const ms = performance.now() - startedAt;
  await after.close();
  return Number(ms.toFixed(1));
}

/** Tasks that are accepted, on the disk itself, each second. */
async function acceptRate(storage: Storage): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < tasks; index = next++) {
      await storage.tasks.put({
        id: `task_${index}`,
        kind: "batch",
        owner: "ann",
        fairnessKey: "principal:ann",
        request: "x".repeat(1000),
        state: "queued",
        attempt: 1,
        createdAt: index,
      });
    }
  };
  await Promise.all(Array.from({ length: tasksAtOnce }, lane));
  return Math.round((tasks * 1000) / (performance.now() - startedAt));
}

async function run(): Promise<readonly Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "plenum-bench-"));
  const open = (name: string) => openSqliteStorage({ ...limits, file: join(folder, name) });
  try {
    const figures: Figure[] = [];
    const add = (name: string, value: number, unit: string): void => void figures.push({ name, value, unit });
    const memory = createMemoryStorage(limits);
    const append = await open("append.db");
    add("append, memory", await appendCost(memory), "ns an event");
    add("append, sqlite", await appendCost(append), "ns an event");
    add("tasks accepted, 32 at once", await acceptRate(append), "a second");
    await append.close();
    const what = `${streams} stored answers of ${tokensPerSecond} tokens/s`;
    const idle = await loopDelay(undefined);
    const inMemory = await loopDelay(memory);
    const streamed = await open("stream.db");
    const inSqlite = await loopDelay(streamed);
    for (const [place, { p99, max }] of [
      ["idle", idle],
      [`${what}, memory`, inMemory],
      [`${what}, sqlite`, inSqlite],
    ] as const) {
      add(`loop delay, ${place}: p99`, p99, "ms");
      add(`loop delay, ${place}: most`, max, "ms");
    }
    const tokens = Array.from({ length: streams }, (_, index) => streamed.log.extent(`resp_delay_${index}`)?.last ?? 0);
    await streamed.close();
    const { size } = await stat(join(folder, "stream.db"));
    const perThousand = size / (tokens.reduce((sum, count) => sum + count, 0) / 1000);
    add(`file, ${what}`, Math.round(perThousand), "bytes for 1,000 tokens");
    add("recall of a response of 10,000 events", await recallCost(() => open("recall.db")), "ms");
    return figures;
  } finally {
    await rm(folder, { recursive: true });
  }
}

export const store: Part = { name: "store", run };
