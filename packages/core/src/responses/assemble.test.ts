import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BackendEvent } from "../events/backend-events.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import { Assembler } from "./assemble.ts";
import { ResponseFold } from "./fold.ts";
import type { Response } from "./response.ts";

const created: Response = {
  id: "resp_x",
  status: "queued",
  model: "m",
  door: "lmsp",
  output: [],
  finishes: [],
  timings: {},
  attempt: 1,
  priority: 0,
  createdAt: 0,
  metadata: {},
};

type OutputEvent = Exclude<BackendEvent, { type: "accepted" | "progress" | "usage" }>;

function assemble(events: readonly OutputEvent[]): { readonly made: ResponseEvent[]; readonly fold: ResponseFold } {
  const fold = new ResponseFold(created);
  const assembler = new Assembler("x", fold);
  const made: ResponseEvent[] = [];
  for (const event of events) assembler.assemble(event, made, 0);
  assembler.closeAll(made, 0);
  return { made, fold };
}

const types = (made: readonly ResponseEvent[]): string[] => made.map(({ type }) => type.replace("response.", ""));

describe("assembler", () => {
  it("makes one message of text", () => {
    const { made, fold } = assemble([
      { type: "text", candidate: 0, delta: "Hel" },
      { type: "text", candidate: 0, delta: "lo" },
      { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "eos" },
    ]);
    expect(types(made)).toEqual([
      "output_item.added",
      "output_text.delta",
      "output_text.delta",
      "output_text.done",
      "output_item.done",
    ]);
    expect(made.at(-1)).toMatchObject({ finishReason: "stop", rawFinishReason: "eos", item: { text: "Hello" } });
    expect(fold.snapshot().output).toMatchObject([
      { id: "msg_x_0", type: "message", text: "Hello", status: "completed" },
    ]);
  });

  it("closes reasoning when the text begins, and text when a call begins", () => {
    const { fold, made } = assemble([
      { type: "reasoning", candidate: 0, delta: "hm" },
      { type: "text", candidate: 0, delta: "I call" },
      { type: "function_call", candidate: 0, call: 0, name: "f" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: "{}" },
      { type: "finish", candidate: 0, finishReason: "tool_calls" },
    ]);
    expect(fold.snapshot().output.map(({ type, status }) => `${type} ${status}`)).toEqual([
      "reasoning completed",
      "message completed",
      "function_call completed",
    ]);
    expect(made.filter((event) => event.type === "response.output_item.done" && event.finishReason)).toHaveLength(1);
  });

  it("keeps interleaved calls apart and gives ids that the backend left out", () => {
    const { fold } = assemble([
      { type: "function_call", candidate: 0, call: 0, name: "f", callId: "own" },
      { type: "function_call", candidate: 0, call: 1, name: "g" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"a"' },
      { type: "function_call_arguments", candidate: 0, call: 1, delta: "{}" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: ":1}" },
      { type: "finish", candidate: 0, finishReason: "tool_calls" },
    ]);
    expect(fold.snapshot().output).toMatchObject([
      { callId: "own", name: "f", arguments: '{"a":1}' },
      { callId: "call_x_1", name: "g", arguments: "{}" },
    ]);
  });

  it("gives an empty answer its message, and ignores what comes after the finish", () => {
    const { fold, made } = assemble([
      { type: "finish", candidate: 0, finishReason: "stop" },
      { type: "text", candidate: 0, delta: "late" },
    ]);
    expect(fold.snapshot().output).toMatchObject([{ type: "message", text: "" }]);
    expect(types(made)).toEqual(["output_item.added", "output_text.done", "output_item.done"]);
  });

  it("marks what is cut: by length, and by the end of the run", () => {
    const length = assemble([
      { type: "text", candidate: 0, delta: "x" },
      { type: "finish", candidate: 0, finishReason: "length" },
    ]);
    expect(length.fold.snapshot().output[0]?.status).toBe("incomplete");
    const cut = assemble([{ type: "text", candidate: 0, delta: "x" }]);
    expect(cut.fold.snapshot().output[0]?.status).toBe("incomplete");
  });

  const candidate = fc.nat({ max: 2 });
  const call = fc.nat({ max: 2 });
  const delta = fc.string({ maxLength: 4 });
  const backendEvent: fc.Arbitrary<OutputEvent> = fc.oneof(
    fc.record({ type: fc.constant("text" as const), candidate, delta }),
    fc.record({ type: fc.constant("reasoning" as const), candidate, delta }),
    fc.record({ type: fc.constant("refusal" as const), candidate, delta }),
    fc.record({ type: fc.constant("function_call" as const), candidate, call, name: fc.constant("f") }),
    fc.record({ type: fc.constant("function_call_arguments" as const), candidate, call, delta }),
    fc.record({ type: fc.constant("finish" as const), candidate, finishReason: fc.constant("stop" as const) }),
  );

  it("whatever a backend pushes: items open once, close once, hold their deltas; folding the events gives the same", () => {
    fc.assert(
      fc.property(fc.array(backendEvent, { maxLength: 40 }), (events) => {
        const { made, fold } = assemble(events);
        const texts = new Map<number, string>();
        const open = new Set<number>();
        for (const event of made) {
          if (event.type === "response.output_item.added") {
            expect(event.item.index).toBe(texts.size);
            texts.set(event.item.index, "");
            open.add(event.item.index);
          } else if ("delta" in event) {
            expect(open.has(event.index)).toBe(true);
            texts.set(event.index, (texts.get(event.index) ?? "") + event.delta);
          } else if (event.type === "response.output_item.done") {
            expect(open.delete(event.item.index)).toBe(true);
          }
        }
        expect(open.size).toBe(0);
        const output = fold.snapshot().output;
        expect(
          output
            .map((item) =>
              item.type === "function_call" ? item.arguments : item.text + ("refusal" in item ? item.refusal : ""),
            )
            .map((text) => text.length),
        ).toEqual([...texts.values()].map((text) => text.length));
        const again = new ResponseFold(created);
        for (const event of made) again.apply(event);
        expect(again.snapshot()).toEqual(fold.snapshot());
      }),
    );
  });
});
