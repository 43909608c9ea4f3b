import { expect, it } from "vitest";
import { idempotencyKeyIn, readRequestHeaders } from "./request-headers.ts";

const nowMs = 1_700_000_000_000;

it.each([
  ["none", {}, {}],
  ["an empty one", { "x-lmsp-priority": " " }, {}],
  ["a priority", { "x-lmsp-priority": "-8" }, { priority: -8 }],
  ["a priority with a sign", { "x-lmsp-priority": "+3" }, { priority: 3 }],
  ["a timeout", { "x-lmsp-timeout-ms": "1500" }, { deadlineMs: nowMs + 1500 }],
  ["continue", { "x-lmsp-on-disconnect": "Continue" }, { onDisconnect: "continue" }],
  ["cancel", { "x-lmsp-on-disconnect": "cancel" }, { onDisconnect: "cancel" }],
  ["services on the way", { "x-lmsp-via": "a-1, b.2" }, { via: ["a-1", "b.2"] }],
  ["an earlier response", { "x-lmsp-supersedes": "chatcmpl-abc" }, { supersedes: "chatcmpl-abc" }],
] as const)("reads %s", (_name, headers, expected) => {
  expect(readRequestHeaders(headers, nowMs)).toEqual(expected);
});

it.each([
  ["x-lmsp-priority", "9", "X-LMSP-Priority"],
  ["x-lmsp-priority", "high", "X-LMSP-Priority"],
  ["x-lmsp-priority", "1.5", "X-LMSP-Priority"],
  ["x-lmsp-timeout-ms", "0", "X-LMSP-Timeout-Ms"],
  ["x-lmsp-timeout-ms", "9999999999999", "X-LMSP-Timeout-Ms"],
  ["x-lmsp-on-disconnect", "maybe", "X-LMSP-On-Disconnect"],
  ["x-lmsp-via", "a, b c", "X-LMSP-Via"],
  ["x-lmsp-via", "a,", "X-LMSP-Via"],
  ["x-lmsp-supersedes", "two words", "X-LMSP-Supersedes"],
  ["x-lmsp-supersedes", "x".repeat(65), "X-LMSP-Supersedes"],
])("refuses %s: %s by name", (name, value, param) => {
  expect(() => readRequestHeaders({ [name]: value }, nowMs)).toThrow(
    expect.objectContaining({ code: "invalid-request", details: { param } }),
  );
});

it.each([
  [undefined, undefined],
  ["", undefined],
  ["8e03978e-40d5", "8e03978e-40d5"],
  ['"8e03978e-40d5"', "8e03978e-40d5"],
  ["x".repeat(255), "x".repeat(255)],
])("reads the key %s", (value, key) => {
  expect(idempotencyKeyIn({ "idempotency-key": value })).toBe(key);
});

it.each(["x".repeat(256), "é", '""', "a\tb"])("refuses the key %s", (value) => {
  expect(() => idempotencyKeyIn({ "idempotency-key": value })).toThrow(
    expect.objectContaining({ code: "invalid-request", details: { param: "Idempotency-Key" } }),
  );
});
