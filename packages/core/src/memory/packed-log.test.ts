import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ResponseEvent } from "../events/response-events.ts";
import { PackedLog } from "./packed-log.ts";

const delta = (index: number, text: string, atMs = 0): ResponseEvent => {
  return { type: "response.output_text.delta", atMs, itemId: `msg_${index}`, index, delta: text };
};
const logprob = { token: "a", logprob: -1, bytes: [97], top: [] };

describe("packed log", () => {
  it("gives back exactly what went in, whatever the events", () => {
    const event = fc.oneof(
      fc.tuple(fc.nat(1), fc.string({ unit: "binary" }), fc.nat()).map(([index, text, at]) => delta(index, text, at)),
      fc.constant<ResponseEvent>({
        ...delta(0, "a"),
        type: "response.output_text.delta",
        logprobs: [logprob],
      } as never),
      fc.constant<ResponseEvent>({ type: "response.in_progress", atMs: 3, runtime: "r" }),
    );
    fc.assert(
      fc.property(fc.array(event, { minLength: 1 }), fc.integer({ min: 1, max: 50 }), (events, first) => {
        const entries = events.map((each, at) => ({ sequence: first + at, event: each }));
        expect(new PackedLog(entries).entries()).toEqual(entries);
      }),
    );
  });
});
