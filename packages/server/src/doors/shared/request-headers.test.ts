import { expect, it } from "vitest";
import { readRequestHeaders } from "./request-headers.ts";

const nowMs = 1_700_000_000_000;

it.each([
  ["none", {}, {}],
  ["an empty one", { "x-lmsp-priority": " " }, {}],
  ["a priority", { "x-lmsp-priority": "-8" }, { priority: -8 }],
  ["a priority with a sign", { "x-lmsp-priority": "+3" }, { priority: 3 }],
  ["a timeout", { "x-lmsp-timeout-ms": "1500" }, { deadlineMs: nowMs + 1500 }],
  ["continue", { "x-lmsp-on-disconnect": "Continue" }, { onDisconnect: "continue" }],
  ["cancel", { "x-lmsp-on-disconnect": "cancel" }, { onDisconnect: "cancel" }],
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
])("refuses %s: %s by name", (name, value, param) => {
  expect(() => readRequestHeaders({ [name]: value }, nowMs)).toThrow(
    expect.objectContaining({ code: "invalid-request", details: { param } }),
  );
});
