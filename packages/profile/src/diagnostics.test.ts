import { expect, it } from "vitest";
import { type Diagnostics, readDiagnostics, writeDiagnostics } from "./diagnostics.ts";

const all: Required<Diagnostics> = {
  requestId: "req_1",
  responseId: "resp_1",
  runtime: "embedded",
  transport: "tcp",
  queuePosition: 0,
  queueDelayMs: 1.5,
  ttftMs: 20,
  retryReason: "overloaded",
  retryAfterMs: 1000,
  cachedInputTokens: 3,
  flowPressure: "soft",
  traceparent: "00-1-2-01",
};

it("reads back what it writes", () => {
  expect(readDiagnostics(writeDiagnostics(all))).toEqual(all);
  expect(writeDiagnostics({ ttftMs: 3 })).toEqual({ ttft_ms: 3 });
});

it("ignores what it doesn't know and what is wrong", () => {
  expect(readDiagnostics({ gpu: "x", ttft_ms: "3", queue_delay_ms: -1, flow_pressure: "huge", runtime: "r" })).toEqual({
    runtime: "r",
  });
});
