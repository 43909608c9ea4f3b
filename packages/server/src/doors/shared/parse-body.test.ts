import fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import { parseBody } from "./parse-body.ts";

const part = z.object({ type: z.literal("text"), text: z.string() });
const schema = z.object({
  name: z.string(),
  content: z.union([z.string(), z.array(part)], "must be a text or a list of parts"),
  count: z.union([z.number(), z.boolean()]).optional(),
  inputs: z.union([z.array(z.string()), z.array(z.int())]).optional(),
});
const good = { name: "a", content: "x" };

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

it("takes what fits", () => {
  expect(parseBody(encode(JSON.stringify(good)), schema)).toEqual(good);
});

it.each([
  ["a missing member", { content: "x" }, "name", "'name' is wrong: it is missing."],
  ["a wrong type", { ...good, name: 1 }, "name", "'name' is wrong: expected string, received number."],
  [
    "a missing union",
    { name: "a" },
    "content",
    "'content' is wrong: it is missing, it must be a text or a list of parts.",
  ],
  [
    "a union of no branch",
    { ...good, content: 3 },
    "content",
    "'content' is wrong: must be a text or a list of parts.",
  ],
  [
    "a place inside a branch",
    { ...good, content: [{ type: "text" }] },
    "content[0].text",
    "'content[0].text' is wrong: it is missing.",
  ],
  [
    "a union without a sentence",
    { ...good, count: "x" },
    "count",
    "'count' is wrong: expected number, received string, or expected boolean, received string.",
  ],
  [
    "branches that got equally far",
    { ...good, inputs: [1.5] },
    "inputs[0]",
    "'inputs[0]' is wrong: expected string, received number, or expected int, received number.",
  ],
])("names %s", (_name, body, param, message) => {
  expect(() => parseBody(encode(JSON.stringify(body)), schema)).toThrow(
    expect.objectContaining({ code: "invalid-request", message, details: { param } }),
  );
});

it.each([
  ["nothing", new Uint8Array(), "The body is empty; send a JSON object."],
  ["half a body", encode('{"a": '), "The body is not valid JSON: it ends too early."],
  ["a wrong comma", encode('{\n  "a": 1,,\n}'), "The body is not valid JSON: line 2, column 10."],
  ["no UTF-8", Uint8Array.of(0xff, 0xfe), "The body is not UTF-8."],
])("refuses %s", (_name, body, message) => {
  expect(() => parseBody(body, schema)).toThrow(expect.objectContaining({ code: "invalid-json", message }));
});

const anything = z.unknown();
const nested = (levels: number): Uint8Array => encode("[".repeat(levels) + "]".repeat(levels));

it("takes 256 levels and refuses more, before a parser walks them", () => {
  expect(() => parseBody(nested(256), anything)).not.toThrow();
  const refusal = expect.objectContaining({ code: "invalid-request", details: { limit: 256 } });
  expect(() => parseBody(nested(257), anything)).toThrow(refusal);
  expect(() => parseBody(encode("[".repeat(1_000_000)), anything)).toThrow(refusal);
});

it("counts no brackets within texts, whatever they hold", () => {
  const piece = fc.constantFrom('"', "\\", "[".repeat(300), "}".repeat(300), "é");
  const text = fc.array(piece).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(fc.array(text), fc.integer({ min: 250, max: 262 }), (texts, levels) => {
      let value: unknown = texts;
      for (let level = 1; level < levels; level += 1) value = { [texts[0] ?? ""]: value };
      const parse = () => parseBody(encode(JSON.stringify(value)), anything);
      if (levels <= 256) expect(parse()).toEqual(value);
      else expect(parse).toThrow(expect.objectContaining({ code: "invalid-request" }));
    }),
  );
});
