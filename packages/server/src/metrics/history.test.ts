import { CoreError, type Response } from "@plenum/core";
import { ManualClock } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { MetricsHistory } from "./history.ts";

const start = new ManualClock().now();

function ended(changes: Partial<Response> = {}): Response {
  return {
    id: "resp_a",
    status: "completed",
    model: "m",
    door: "openai",
    output: [],
    finishes: [],
    timings: { firstTokenMs: 100, totalMs: 1_100 },
    usage: { inputTokens: 5, outputTokens: 11, cachedInputTokens: 0, reasoningTokens: 0 },
    attempt: 1,
    priority: 0,
    createdAt: start,
    metadata: {},
    ...changes,
  };
}

function at(clock: ManualClock): MetricsHistory {
  return new MetricsHistory(clock);
}

describe("metrics history", () => {
  it("counts requests, errors, times and tokens of each step, model and door", () => {
    const clock = new ManualClock();
    const history = at(clock);
    for (const firstTokenMs of [100, 200, 300]) {
      history.observer.responseEnded?.(ended({ timings: { firstTokenMs, totalMs: firstTokenMs + 1_000 } }), undefined);
    }
    clock.advance(10_000);
    history.observer.responseEnded?.(ended({ status: "failed" }), new CoreError("backend-error", "gone"));
    history.observer.embeddingEnded?.({ model: "e", door: "ollama", inputTokens: 3, totalMs: 5 });
    const { series, from, to } = history.view(60_000, 10_000);
    expect(to - from).toBe(60_000);
    expect(series.map(({ model, door }) => [model, door])).toEqual([
      ["m", "openai"],
      ["e", "ollama"],
    ]);
    expect(series[0]?.points).toEqual([
      {
        at: start,
        requests: 3,
        errors: {},
        ttftMs: { p50: 200, p95: 300 },
        interTokenMs: { p50: 100, p95: 100 },
        outputTokens: 33,
        tokensPerSecond: 3.3,
      },
      expect.objectContaining({ at: start + 10_000, requests: 1, errors: { "backend-error": 1 } }),
    ]);
  });

  it("merges into longer steps, and forgets what is older than an hour", () => {
    const clock = new ManualClock();
    const history = at(clock);
    history.observer.responseEnded?.(ended(), undefined);
    clock.advance(50_000);
    history.observer.responseEnded?.(ended(), undefined);
    expect(history.view(3_600_000, 100_000).series[0]?.points).toMatchObject([{ requests: 2, outputTokens: 22 }]);
    clock.advance(3_600_000);
    history.observer.responseEnded?.(ended(), undefined);
    expect(history.view(3_600_000, 100_000).series[0]?.points).toMatchObject([{ requests: 1 }]);
  });

  it("keeps the longest queue of a step, and tells when a step has ended", () => {
    const clock = new ManualClock();
    const history = at(clock);
    const scheduler = { queued: 0, running: 1 };
    let steps = 0;
    history.watch({ scheduler } as never);
    const stop = history.onStep(() => {
      steps += 1;
    });
    scheduler.queued = 7;
    clock.advance(2_000);
    scheduler.queued = 0;
    clock.advance(9_000);
    stop();
    expect(steps).toBe(1);
    expect(history.view(60_000, 10_000).queue).toEqual([
      { at: start, queued: 7, running: 1 },
      { at: start + 10_000, queued: 0, running: 1 },
    ]);
    history.close();
  });

  it("stays bounded however many models and requests there are", () => {
    const clock = new ManualClock();
    const history = at(clock);
    for (let index = 0; index < 300; index += 1) {
      for (let times = 0; times < 200; times += 1) {
        history.observer.responseEnded?.(ended({ model: `m${index}`, timings: { firstTokenMs: times } }), undefined);
      }
      clock.advance(10_000);
    }
    const { series } = history.view(3_600_000, 10_000);
    expect(series).toHaveLength(128);
    expect(series.at(-1)).toMatchObject({ model: "m299", points: [{ requests: 200 }] });
  });
});
