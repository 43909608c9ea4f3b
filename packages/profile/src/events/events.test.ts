import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contract, exchanges } from "../testing/fixtures.ts";
import { isTerminalEvent, type ProfileEvent } from "./event.ts";
import { EventReader } from "./read-event.ts";
import {
  writeCancelled,
  writeCompleted,
  writeFailed,
  writeOpenAIChunk,
  writeTextDelta,
  writeToolCallCompleted,
  writeToolCallDelta,
  writeToolCallFailed,
  writeToolCallStarted,
  writeUsage,
} from "./write-event.ts";

function read(value: unknown): ProfileEvent {
  const result = new EventReader().read(JSON.stringify(value));
  if (result.kind !== "event") throw new Error(`is ${result.kind}`);
  return result.event;
}

const place = { index: 0, itemId: "item_1", callId: "call_1" };
const error = { type: "server_error", code: "tool_failed", message: "It failed." };
const flat = { index: 0, item_id: "item_1", call_id: "call_1" };

describe("reading", () => {
  it("takes every recorded event as it is", () => {
    for (const { steps } of exchanges) {
      const reader = new EventReader();
      for (const step of steps) {
        const text = "partial" in step ? step.partial : "result" in step ? step.result : undefined;
        if (text === undefined) continue;
        const result = reader.read(new TextEncoder().encode(text));
        expect(result).toEqual({ kind: "event", event: JSON.parse(text) });
        expect(result.kind === "event" && isTerminalEvent(result.event)).toBe("result" in step);
      }
    }
  });

  const examples: Record<string, Record<string, unknown>> = {
    "response.tool_call.started": { ...flat, name: "lookup" },
    "response.tool_call.delta": { ...flat, arguments_delta: "{" },
    "response.tool_call.completed": { ...flat, name: "lookup", arguments: "{}" },
    "response.tool_call.error": { ...flat, error },
  };

  describe.each(Object.entries(contract.toolCallEvents))("the contract's %s", (type, { required, fields }) => {
    const example: Record<string, unknown> = { type, ...examples[type] };

    it("is taken", () => {
      expect(Object.keys(example).sort()).toEqual([...required].sort());
      expect(read(example)).toEqual(example);
    });

    it.each(required.filter((field) => field !== "type"))("needs a valid %s", (field) => {
      const rule = fields[field];
      const bad: unknown[] = [undefined, null, 7.5, [], true];
      if (rule?.type === "integer") bad.push(-1, "0");
      if (rule?.minLength) bad.push("");
      if (rule?.type === "string") bad.push({});
      for (const value of bad) {
        const result = new EventReader().read(JSON.stringify({ ...example, [field]: value }));
        expect(result).toMatchObject({ kind: "invalid", field });
      }
    });
  });

  it.each([
    [{ type: "response.output_text.delta", delta: "x" }, "index"],
    [{ type: "response.output_text.delta", index: 0 }, "delta"],
    [{ type: "response.usage" }, "usage"],
    [{ type: "response.diagnostics", diagnostics: [] }, "diagnostics"],
    [{ type: "response.completed", body: "x" }, "body"],
    [{ type: "response.error", error: "x" }, "error"],
    [{ type: "response.cancelled" }, "reason"],
    [{ type: 7 }, "type"],
    [{}, "type"],
  ])("names the wrong member of %j", (value, field) => {
    expect(new EventReader().read(JSON.stringify(value))).toMatchObject({ kind: "invalid", field });
  });

  it("ignores events of other types, members of other names, and a chunk that is none", () => {
    expect(new EventReader().read('{"type":"response.reasoning.delta"}')).toEqual({
      kind: "unknown",
      type: "response.reasoning.delta",
    });
    const text = { type: "response.output_text.delta", index: 0, delta: "x" };
    expect(read({ ...text, later: 1 })).toMatchObject(text);
    expect(read({ ...text, openai_chunk: "x" })).toEqual(text);
  });

  it("completes an error that peers leave half said", () => {
    expect(read({ type: "response.error", error: { code: 404 } })).toEqual({
      type: "response.error",
      error: { type: "server_error", code: "404", message: "The service gave no reason." },
    });
  });

  it("never throws", () => {
    const types = ["response.tool_call.delta", "response.tool_call.completed", "response.error", "response.usage"];
    const shaped = fc
      .dictionary(fc.constantFrom("index", "item_id", "call_id", "tool_call", "error", "name"), fc.jsonValue())
      .chain((members) => fc.constantFrom(...types).map((type) => JSON.stringify({ ...members, type })));
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.uint8Array(), fc.json(), shaped)), (inputs) => {
        const reader = new EventReader();
        for (const input of inputs) reader.read(input);
      }),
      { numRuns: 500 },
    );
  });
});

describe("tool calls in the form of the profile's first text", () => {
  function readAll(values: readonly object[]): ProfileEvent[] {
    const reader = new EventReader();
    return values.flatMap((value) => {
      const result = reader.read(JSON.stringify(value));
      if (result.kind !== "event") throw new Error(JSON.stringify(result));
      return result.before === undefined ? [result.event] : [result.before, result.event];
    });
  }

  const type = "response.tool_call.delta";

  it("are started by their first piece, which names them once", () => {
    expect(
      readAll([
        { type, index: 0, tool_call: { index: 0, id: "call_a", function: { name: "lookup", arguments: "" } } },
        { type, index: 1, tool_call: { index: 1, id: "call_b", function: { name: "other", arguments: "{" } } },
        { type, index: 0, tool_call: { index: 0, function: { arguments: '{"k":1}' } } },
        { type: "response.tool_call.completed", index: 0, tool_call: { index: 0 } },
      ]),
    ).toEqual([
      { type: "response.tool_call.started", index: 0, item_id: "tool-call-0-0", call_id: "call_a", name: "lookup" },
      { type, index: 0, item_id: "tool-call-0-0", call_id: "call_a", arguments_delta: "" },
      { type: "response.tool_call.started", index: 1, item_id: "tool-call-0-1", call_id: "call_b", name: "other" },
      { type, index: 1, item_id: "tool-call-0-1", call_id: "call_b", arguments_delta: "{" },
      { type, index: 0, item_id: "tool-call-0-0", call_id: "call_a", arguments_delta: '{"k":1}' },
      {
        type: "response.tool_call.completed",
        index: 0,
        item_id: "tool-call-0-0",
        call_id: "call_a",
        name: "lookup",
        arguments: '{"k":1}',
      },
    ]);
  });

  it("give way to the contract's members", () => {
    const value = { type, ...flat, arguments_delta: "{", tool_call: { id: "other", function: { arguments: "x" } } };
    expect(read(value)).toEqual(value);
  });

  it("need a name at some time", () => {
    const result = new EventReader().read(JSON.stringify({ type, index: 0, tool_call: { id: "call_a" } }));
    expect(result).toMatchObject({ kind: "invalid", field: "tool_call.function.name" });
  });

  it("are written beside the contract's, so that readers of either form agree", () => {
    const written = [writeToolCallStarted(place, "lookup"), writeToolCallDelta(place, '{"k":1}')];
    const older = written.map((text) => {
      const { item_id: _, call_id: __, name: ___, arguments_delta: ____, ...rest } = JSON.parse(text);
      return rest as object;
    });
    const [started, delta] = readAll(older);
    expect(started).toMatchObject({ call_id: "call_1", name: "lookup" });
    expect(delta).toMatchObject({ call_id: "call_1", arguments_delta: '{"k":1}' });
  });
});

describe("writing", () => {
  const chunk = '{"id":"chatcmpl-1","choices":[]}';

  it("makes the same JSON of a text as JSON.stringify", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom("\ud800", '"', "\u2028", "a") }),
    );
    fc.assert(
      fc.property(fc.nat(), text, (index, delta) => {
        const plain = { type: "response.output_text.delta", index, delta };
        expect(writeTextDelta(index, delta)).toBe(JSON.stringify(plain));
        expect(JSON.parse(writeTextDelta(index, delta, chunk))).toEqual({ ...plain, openai_chunk: JSON.parse(chunk) });
      }),
    );
  });

  it.each([
    writeToolCallStarted(place, "lookup"),
    writeToolCallStarted(place, "lookup", chunk),
    writeToolCallDelta(place, '{"a":', chunk),
    writeToolCallCompleted(place, 'na"me', '{"a":1}'),
    writeToolCallFailed(place, error),
    writeUsage({ input_tokens: 1 }, chunk),
    writeOpenAIChunk(chunk),
    writeCompleted('{"id":"x"}', "req_1"),
    writeFailed(error, { requestId: "req_1", diagnostics: { retry_after_ms: 5 }, chunk }),
    writeCancelled('"quoted"'),
  ])("is read back: %s", (text) => {
    expect(new EventReader().read(text)).toEqual({ kind: "event", event: JSON.parse(text) });
  });
});
