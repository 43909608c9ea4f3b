import { expect, it } from "vitest";
import { traceFromTraceparent, traceparentOf } from "./trace.ts";

it("takes the low half of a trace id, the parent as span, and the sampled bit", () => {
  expect(traceFromTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")).toEqual({
    traceId: 0xa3ce929d0e0e4736n,
    spanId: 0x00f067aa0ba902b7n,
    sampled: true,
  });
});

it("gives it back with an upper half of zeros", () => {
  const context = { traceId: 0xa3ce929d0e0e4736n, spanId: 5n, sampled: false };
  expect(traceparentOf(context)).toBe("00-0000000000000000a3ce929d0e0e4736-0000000000000005-00");
  expect(traceFromTraceparent(traceparentOf(context))).toEqual(context);
});

it.each([
  "",
  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
  "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
  "00-4bf92f3577b34da60000000000000000-00f067aa0ba902b7-01",
  "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
])("leaves out %j", (header) => {
  expect(traceFromTraceparent(header)).toBeUndefined();
});

it("reads what later versions add", () => {
  expect(traceFromTraceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more")?.sampled).toBe(true);
});
