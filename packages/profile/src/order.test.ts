import { describe, expect, it } from "vitest";
import type { ProfileEvent } from "./events/event.ts";
import { EventReader } from "./events/read-event.ts";
import { type Delivery, EventOrder, type OrderFaultCode } from "./order.ts";
import { exchanges } from "./testing/fixtures.ts";

const call = (id: string) => ({ index: 0, item_id: `item_${id}`, call_id: id });
const text: ProfileEvent = { type: "response.output_text.delta", index: 0, delta: "x" };
const usage: ProfileEvent = { type: "response.usage", usage: {} };
const done: ProfileEvent = { type: "response.completed", body: {} };
const cancelled: ProfileEvent = { type: "response.cancelled", reason: "peer_cancelled" };
const start = (id: string): ProfileEvent => ({ type: "response.tool_call.started", ...call(id), name: "f" });
const piece = (id: string, args: string): ProfileEvent => ({
  type: "response.tool_call.delta",
  ...call(id),
  arguments_delta: args,
});
const end = (id: string, args: string, name = "f"): ProfileEvent => ({
  type: "response.tool_call.completed",
  ...call(id),
  name,
  arguments: args,
});
const failed = (id: string): ProfileEvent => ({
  type: "response.tool_call.error",
  ...call(id),
  error: { type: "server_error", code: "x", message: "" },
});

const terminals: ReadonlySet<string> = new Set(["response.completed", "response.error", "response.cancelled"]);

function judge(events: readonly ProfileEvent[], isStrict = false): OrderFaultCode | undefined {
  const order = new EventOrder({ isStrict });
  for (const event of events) {
    const delivery: Delivery = terminals.has(event.type) ? "terminal" : "partial";
    const fault = order.take(event, delivery);
    if (fault) return fault.code;
  }
  return undefined;
}

describe("legal", () => {
  it.each<[string, readonly ProfileEvent[]]>([
    ["nothing but an end", [done]],
    ["text", [text, text, usage, done]],
    [
      "calls that interleave",
      [
        start("a"),
        start("b"),
        piece("a", "{"),
        piece("b", "["),
        piece("a", "}"),
        piece("b", "]"),
        end("b", "[]"),
        end("a", "{}"),
        done,
      ],
    ],
    ["a call in one piece", [start("a"), end("a", "{}"), done]],
    ["a call that fails", [start("a"), piece("a", "{"), failed("a"), done]],
    ["a cancel inside a call", [start("a"), cancelled]],
  ])("%s", (_name, events) => {
    expect(judge(events, true)).toBeUndefined();
  });

  it("every recorded stream", () => {
    for (const { steps } of exchanges) {
      const reader = new EventReader();
      const order = new EventOrder({ isStrict: true });
      for (const step of steps) {
        const isPartial = "partial" in step;
        if (!isPartial && !("result" in step)) continue;
        const result = reader.read(isPartial ? step.partial : step.result);
        if (result.kind !== "event") throw new Error("not read");
        expect(order.take(result.event, isPartial ? "partial" : "terminal")).toBeUndefined();
      }
    }
  });
});

describe("refused", () => {
  it.each<[OrderFaultCode, readonly ProfileEvent[]]>([
    ["after_terminal", [done, text]],
    ["after_terminal", [cancelled, done]],
    ["call_started_twice", [start("a"), start("a")]],
    ["call_started_twice", [start("a"), end("a", ""), start("a")]],
    ["call_not_started", [piece("a", "{")]],
    ["call_not_started", [end("a", "{}")]],
    ["call_not_started", [start("b"), failed("a")]],
    ["call_after_end", [start("a"), end("a", ""), piece("a", "{")]],
    ["call_after_end", [start("a"), failed("a"), end("a", "")]],
    ["call_left_open", [start("a"), done]],
    ["call_renamed", [start("a"), end("a", "", "g")]],
    ["arguments_differ", [start("a"), piece("a", "{"), end("a", "{}")]],
  ])("%s", (code, events) => {
    expect(judge(events)).toBe(code);
  });

  it.each<[OrderFaultCode, readonly ProfileEvent[]]>([
    ["output_after_usage", [usage, text]],
    ["output_after_usage", [usage, start("a")]],
    ["usage_twice", [usage, usage]],
  ])("%s, when it is strict", (code, events) => {
    expect(judge(events)).toBeUndefined();
    expect(judge(events, true)).toBe(code);
  });

  it("the wrong delivery", () => {
    expect(new EventOrder().take(done, "partial")?.code).toBe("terminal_as_partial");
    expect(new EventOrder().take(text, "terminal")?.code).toBe("partial_as_terminal");
  });

  it("and goes on as if the wrong event had not been", () => {
    const order = new EventOrder();
    expect(order.take(piece("a", "{"), "partial")).toMatchObject({ code: "call_not_started", callId: "a" });
    expect(order.take(start("a"), "partial")).toBeUndefined();
    expect(order.take(end("a", ""), "partial")).toBeUndefined();
    expect(order.take(done, "terminal")).toBeUndefined();
    expect(order.hasEnded).toBe(true);
  });
});
