import type { ResponseEvent } from "@plenum/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { packEntries, unpackEntries } from "./event-chunk.ts";
import { completed, record } from "./testing/fixtures-data.ts";

test("gives back exactly what went in, whatever the events", () => {
  const text = fc.string({ unit: "binary" });
  const event = fc.oneof(
    fc.tuple(text, fc.nat(1), text, fc.nat()).map(
      ([itemId, index, delta, atMs]): ResponseEvent => ({
        type: "response.output_text.delta",
        atMs,
        itemId,
        index,
        delta,
      }),
    ),
    text.map(
      (delta): ResponseEvent => ({ type: "response.reasoning_text.delta", atMs: 1, itemId: "rs_a_0", index: 0, delta }),
    ),
    fc.constant<ResponseEvent>({
      type: "response.output_text.delta",
      atMs: 1,
      itemId: "msg_a_0",
      index: 0,
      delta: "a",
      logprobs: [{ token: "a", logprob: -1, bytes: [97], top: [] }],
    }),
    fc.constant<ResponseEvent>(completed(record("resp_a"))),
  );
  fc.assert(
    fc.property(fc.array(event), (events) => {
      const entries = events.map((each, index) => ({ sequence: index + 1, event: each }));
      expect(unpackEntries(packEntries(entries))).toEqual(events);
    }),
  );
});
