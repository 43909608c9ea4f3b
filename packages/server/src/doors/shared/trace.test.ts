import { expect, it } from "vitest";
import { readRequestHeaders } from "./request-headers.ts";

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

it.each([
  ["both", { traceparent, tracestate: "a=1, b=2" }, { traceparent, tracestate: "a=1, b=2" }],
  ["no state", { traceparent }, { traceparent }],
  ["a state that can't be passed on", { traceparent, tracestate: "x".repeat(513) }, { traceparent }],
  [
    "a version to come",
    { traceparent: `01${traceparent.slice(2)}-more` },
    { traceparent: `01${traceparent.slice(2)}-more` },
  ],
  ["more than version 00 has", { traceparent: `${traceparent}-more` }, undefined],
  ["the version that never comes", { traceparent: `ff${traceparent.slice(2)}` }, undefined],
  ["no trace id", { traceparent: traceparent.replace(/4bf\w+/, "0".repeat(32)) }, undefined],
  ["no span id", { traceparent: traceparent.replace("00f067aa0ba902b7", "0".repeat(16)) }, undefined],
  ["capitals", { traceparent: traceparent.toUpperCase() }, undefined],
  ["a state alone", { tracestate: "a=1" }, undefined],
])("reads W3C's headers of a trace: %s", (_what, headers, trace) => {
  expect(readRequestHeaders(headers, 0).trace).toEqual(trace);
});
