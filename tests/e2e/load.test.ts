import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatModel,
  endless,
  type Json,
  measured,
  post,
  type RunningService,
  skipReason,
  startService,
  waitFor,
} from "./service.ts";

const delayMetric = "nodejs_eventloop_lag_p99_seconds";

describe.skipIf(skipReason !== undefined)("many at once", () => {
  let service: RunningService;
  /** The same program with nothing to do, beside the busy one. */
  let control: RunningService;
  beforeAll(async () => {
    service = await startService();
    control = await startService({ models: [], waitUntilReady: false });
  });
  afterAll(() => Promise.all([service?.stop(), control?.stop()]));

  const chat = (content: string, maxTokens = 12) => ({
    model: chatModel,
    messages: [{ role: "user", content }],
    max_tokens: maxTokens,
    temperature: 0,
  });
  const ask = (content: string, key: string, maxTokens?: number) =>
    fetch(`${service.url}/v1/chat/completions`, {
      ...post(chat(content, maxTokens)),
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    });

  it("64 chats are all answered, in order of arrival, with flat memory and a free event loop", async () => {
    for (let round = 0; round < 2; round += 1)
      await Promise.all(
        Array.from({ length: 8 }, (_, index) => ask(`Warm ${index}`, "a").then((answer) => answer.json())),
      );
    await Promise.all([service.metric(delayMetric), control.metric(delayMetric)]);
    const memoryBefore = await service.metric("process_resident_memory_bytes");

    const runs = await Promise.all(
      Array.from({ length: 64 }, (_, index) => run(`Tell me about number ${index}.`, "one")),
    );
    const [busy, idle] = await Promise.all([service.metric(delayMetric), control.metric(delayMetric)]);
    const memoryAfter = await service.metric("process_resident_memory_bytes");
    expect(runs.map(({ status }) => status)).toEqual(Array(64).fill(200));
    const arrivals = [...runs]
      .sort((a, b) => a.startedAt - b.startedAt || a.createdAt - b.createdAt)
      .map(({ createdAt }) => createdAt);
    expect(arrivals).toEqual([...arrivals].sort((a, b) => a - b));
    measured(
      "event-loop delay p99, 64 chats / idle control",
      `${(busy * 1e3).toFixed(1)} / ${(idle * 1e3).toFixed(1)} ms`,
    );
    measured("memory of the service before / after 64 chats", `${mb(memoryBefore)} / ${mb(memoryAfter)} MB`);
    expect(memoryAfter - memoryBefore).toBeLessThan(60e6);
  });

  /** Sends a chat and reads, as soon as it is answered, when it arrived and when it started. */
  async function run(content: string, key: string) {
    const answer = await ask(content, key);
    const { id } = (await answer.json()) as Json;
    const { body } = await service.json(`/lmsp/v1/responses/${id.replace("chatcmpl-", "resp_")}`);
    const createdAt = Date.parse(body.created_at);
    return { status: answer.status, createdAt, startedAt: createdAt + body.timings.queued };
  }

  it("4 of one beside 60 of another: each of the 4 waits for at most 8 starts", async () => {
    const many = Array.from({ length: 60 }, (_, index) => run(`Count ${index}`, "many"));
    await waitFor(async () => ((await service.metric("plenum_queue_length")) === 56 ? true : undefined));
    const few = await Promise.all(Array.from({ length: 4 }, (_, index) => run(`Please ${index}`, "few")));
    const all = [...(await Promise.all(many)), ...few];
    const waited = few.map(
      ({ createdAt, startedAt }) =>
        all.filter((other) => other.startedAt > createdAt && other.startedAt < startedAt).length,
    );
    measured("starts before each of the 4", waited.join(", "));
    for (const starts of waited) expect(starts).toBeLessThanOrEqual(8);
  });

  it("kill -9 of the engine in the middle: its clients get a problem, new ones an answer", async () => {
    const answers = Array.from({ length: 4 }, () =>
      fetch(
        `${service.url}/v1/chat/completions`,
        post({ ...chat("Write a long story.", 2_000), ...endless, stream: true }),
      ).then((answer) => answer.text()),
    );
    await waitFor(async () => ((await service.metric("plenum_running")) === 4 ? true : undefined));
    await new Promise((done) => setTimeout(done, 500));
    const engines = childrenOf(service.process.pid ?? 0);
    expect(engines.length).toBeGreaterThan(0);
    const killedAt = performance.now();
    for (const pid of engines) process.kill(pid, "SIGKILL");
    const texts = await Promise.all(answers);
    measured("clients knew after", `${(performance.now() - killedAt).toFixed(0)} ms`);
    for (const text of texts) {
      expect(text).toContain('"error"');
      expect(text).not.toContain("[DONE]");
    }
    const again = await ask("Are you there?", "one");
    measured("next answer after the kill", `${(performance.now() - killedAt).toFixed(0)} ms`);
    expect(again.status).toBe(200);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });
});

function childrenOf(parent: number): number[] {
  return execFileSync("ps", ["-eo", "pid,ppid"], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, ppid]) => ppid === parent)
    .map(([pid]) => pid ?? 0)
    .filter((pid) => isEngine(pid));
}

function isEngine(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("engine");
  } catch {
    return false;
  }
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(0);
