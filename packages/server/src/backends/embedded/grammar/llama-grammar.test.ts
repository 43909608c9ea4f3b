import { getLlama, type Llama, LlamaGrammar, LlamaLogLevel } from "node-llama-cpp";
import { beforeAll, describe, expect, test } from "vitest";
import { GrammarBuilder, grammarText, schemaToGrammar, sequence, text, textUntil } from "./index.ts";

/** The engine's own reader of GBNF has the last word on syntax, left recursion and repetition counts. */
describe("grammars are read by llama.cpp", () => {
  let llama: Llama;
  beforeAll(async () => {
    llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.disabled });
  }, 60_000);

  const cases: Record<string, unknown> = {
    "any JSON": true,
    members: {
      type: "object",
      properties: {
        'a"\\\n': { type: "string", minLength: 1 },
        "ключ😀": { type: "integer", minimum: -77, maximum: 1234 },
      },
      required: ["ключ😀"],
      additionalProperties: { type: "number", exclusiveMinimum: 0 },
    },
    "long strings": { type: "string", minLength: 1234, maxLength: 20_000 },
    "large arrays": { type: "array", items: { type: "integer" }, minItems: 500, maxItems: 20_000 },
    formats: {
      type: "object",
      properties: Object.fromEntries(
        ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"].map((format) => [
          format,
          { type: "string", format },
        ]),
      ),
    },
    patterns: { type: "string", pattern: '^[^\\]\\[^"-]+(a|b\\\\)*\\x00?[\\u{1F600}-\\u{1F64F}]{2,5}$' },
    recursion: {
      type: "object",
      properties: { left: { $ref: "#" }, right: { anyOf: [{ $ref: "#" }, { type: "null" }] } },
    },
    values: { enum: ['quote"d', "back\\slash", "new\nline", "\u0001", "\ud800", 1e21, null, { a: [1] }] },
    "many members": {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 200 }, (_, index) => [`member${index}`, { type: "boolean" }]),
      ),
    },
  };

  test.each(Object.entries(cases))("%s", (_name, schema) => {
    expect(() => new LlamaGrammar(llama, { grammar: schemaToGrammar(schema) })).not.toThrow();
  });

  test("free text up to an end", () => {
    const builder = new GrammarBuilder();
    const root = sequence(textUntil(builder, "</think>"), text('\n{"a": "\\\\"}'));
    expect(() => new LlamaGrammar(llama, { grammar: grammarText(builder, root, "tools") })).not.toThrow();
  });

  test("a wrong one is noticed", () => {
    expect(() => new LlamaGrammar(llama, { grammar: "root ::= (" })).toThrow();
  });
});
