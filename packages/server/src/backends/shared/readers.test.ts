import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExact, writeExact } from "./exact-json.ts";
import { NdjsonReader } from "./ndjson-reader.ts";
import { SseReader } from "./sse-reader.ts";
import { Utf8Reads } from "./utf8-reads.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function sse(chunks: readonly Uint8Array[]): [string, string][] {
  const events: [string, string][] = [];
  const reader = new SseReader((data, type) => events.push([data, type]));
  for (const chunk of chunks) reader.push(chunk);
  return events;
}

function oracle(text: string): [string, string][] {
  const events: [string, string][] = [];
  const parser = createParser({ onEvent: ({ data, event }) => events.push([data, event ?? ""]) });
  parser.feed(text);
  return events;
}

const streams = [
  "data: a\n\ndata: b\n\n",
  "data: a\r\n\r\ndata: b\r\n\r\n",
  "data: a\n\r\ndata:b\n\n",
  ": comment\n\n:\n\ndata: ok\n\n",
  "data: one\ndata: two\ndata:\ndata:  three\n\n",
  "data\n\ndata\ndata\n\n",
  "event: error\ndata: {}\n\nevent: x\n\ndata: y\n\n",
  'id: 1\nretry: 10\nunknown: z\nno colon\ndata: {"a":"世界🌍é"}\n\n',
  "data: without end",
  "\n\n\ndata: after blank lines\n\n",
];

describe("SseReader", () => {
  it.each(streams)("reads %j as eventsource-parser does, cut at every byte", (text) => {
    const whole = bytes(text);
    const expected = oracle(text);
    for (let at = 0; at <= whole.length; at += 1) {
      expect(sse([whole.subarray(0, at), whole.subarray(at)])).toEqual(expected);
    }
    expect(sse([...whole].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
  });

  it("reads what a generator makes as eventsource-parser does", () => {
    const line = fc.oneof(
      fc.constantFrom("", "data: a", "data:b", "data", ": c", "event: e", "x: y", "data: ü\u0000"),
      fc.string({ unit: "grapheme", maxLength: 8 }).filter((text) => !/[\r\n\ufeff]/.test(text)),
    );
    const streamOf = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 12 });
    fc.assert(
      fc.property(streamOf, fc.array(fc.nat(200), { maxLength: 6 }), (lines, cuts) => {
        const text = lines.map((pair) => pair.join("")).join("");
        const whole = bytes(text);
        const places = [...new Set(cuts.map((cut) => Math.min(cut, whole.length)))].sort((a, b) => a - b);
        const chunks = [0, ...places].map((from, index) => whole.subarray(from, places[index] ?? whole.length));
        expect(sse(chunks)).toEqual(oracle(text));
      }),
    );
  });

  it.each(["\r", "\r\n", "\n"])("takes %j as line end, cut at every byte", (end) => {
    const whole = bytes(`data: a${end}data: b${end}${end}:${end}data: c${end}${end}`);
    for (let at = 0; at <= whole.length; at += 1) {
      expect(sse([whole.subarray(0, at), whole.subarray(at)])).toEqual([
        ["a\nb", ""],
        ["c", ""],
      ]);
    }
  });

  it("gives an event that a CR ends at once, without waiting for what may follow", () => {
    expect(sse([bytes("data: a\r\r")])).toEqual([["a", ""]]);
  });

  it("leaves out one byte-order mark, cut at every byte", () => {
    const whole = bytes("\ufeffdata: a\n\n");
    for (let at = 0; at <= 4; at += 1) expect(sse([whole.subarray(0, at), whole.subarray(at)])).toEqual([["a", ""]]);
  });

  it("gives what stands at the end without its blank line", () => {
    const events: string[] = [];
    const reader = new SseReader((data) => events.push(data));
    reader.push(bytes("data: a\n\ndata: [DONE]"));
    reader.end();
    expect(events).toEqual(["a", "[DONE]"]);
  });

  it.each([
    ["one line", "data: ", "x", 10],
    ["several lines", "data: xxxx\ndata: ", "x", 5],
  ])("refuses an event at limit + 1, not at the limit: %s", (_name, begin, unit, count) => {
    const run = (more: number) => {
      const reader = new SseReader(() => undefined, 16);
      reader.push(bytes(begin));
      for (let index = 0; index < count + more; index += 1) reader.push(bytes(unit));
      reader.push(bytes("\n\n"));
    };
    expect(() => run(0)).not.toThrow();
    expect(() => run(7)).toThrow(/more than 16 characters/);
  });

  it("refuses an event of 10 MB and takes comments without end", () => {
    const reader = new SseReader(() => undefined);
    const comment = bytes(`: ${"x".repeat(65_534)}\n`);
    for (let index = 0; index < 100; index += 1) reader.push(comment);
    const piece = bytes("x".repeat(65_536));
    reader.push(bytes("data: "));
    expect(() => {
      for (let index = 0; index < 160; index += 1) reader.push(piece);
    }).toThrow(/4194304 characters/);
  });
});

describe("NdjsonReader", () => {
  const text = '\ufeff{"a":"世🌍"}\n\n\r\n{"b":1}\r\n  \n{"c":2}';
  it("gives each line, cut at every byte, and the last without its end", () => {
    const whole = bytes(text);
    for (let at = 0; at <= whole.length; at += 1) {
      const lines: string[] = [];
      const reader = new NdjsonReader((line) => lines.push(line));
      reader.push(whole.subarray(0, at));
      reader.push(whole.subarray(at));
      reader.end();
      expect(lines).toEqual(['{"a":"世🌍"}', '{"b":1}', '{"c":2}']);
    }
  });

  it("refuses a line at limit + 1, not at the limit, with or without its end", () => {
    const run = (line: string) => new NdjsonReader(() => undefined, 8).push(bytes(line));
    expect(() => run("12345678\n")).not.toThrow();
    expect(() => run("123456789\n")).toThrow(/more than 8 characters/);
    expect(() => run("123456789")).toThrow(/more than 8 characters/);
  });
});

describe("Utf8Reads", () => {
  it("reads any bytes, cut anywhere, as TextDecoder reads them whole", () => {
    const byte = fc.oneof(
      fc.constantFrom(0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x8c, 0x8d, 0xed, 0xa0, 0xf4, 0x90, 0xc0),
      fc.nat(255),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 12 }), fc.nat(12), fc.nat(12), (values, one, two) => {
        const whole = Uint8Array.from(values);
        const [from, to] = one < two ? [one, two] : [two, one];
        const reads = new Utf8Reads();
        const parts = [whole.subarray(0, from), whole.subarray(from, to), whole.subarray(to)];
        const text = parts.map((part) => reads.read(part)).join("") + reads.end();
        expect(text).toBe(new TextDecoder().decode(whole));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("parseExact and writeExact", () => {
  it.each([
    '{"id":12345678901234567890,"a":[1.0,-1e3,0.1],"s":"123456789012345678901"}',
    '{"text":"\\"1e5\\" \\\\","n":-0,"b":true,"x":null}',
  ])("keep %s", (text) => expect(writeExact(parseExact(text))).toBe(text));
});
