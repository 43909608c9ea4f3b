import type { BackendRequest, FunctionTool } from "@plenum/core";
import { describe, expect, test } from "vitest";
import { matches, readGbnf } from "../grammar/testing/gbnf-reader.ts";
import { ask, clock, type FixtureName, formatOf, weather } from "./testing/fixtures.ts";

function fits(name: FixtureName, request: BackendRequest, text: string): boolean {
  const { grammar } = formatOf(name).render(request);
  if (grammar === undefined) throw new Error("no grammar");
  return matches(readGbnf(grammar), text);
}

const call = (name: string, given: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${given}}\n</tool_call>`;
const tools = [weather, clock];

describe("forced calls", () => {
  const required = ask("Hi", { tools, toolChoice: "required" });

  test("one or more calls with arguments that fit", () => {
    expect(fits("smollm2", required, call("get_weather", '{"city": "x"}'))).toBe(true);
    expect(fits("smollm2", required, `${call("get_time", "{}")}\n${call("get_weather", '{"city": "x"}')}`)).toBe(true);
    expect(fits("smollm2", required, call("get_weather", "{}"))).toBe(false);
    expect(fits("smollm2", required, call("rm", "{}"))).toBe(false);
    expect(fits("smollm2", required, "Hello")).toBe(false);
    expect(fits("smollm2", required, Array(9).fill(call("get_time", "{}")).join("\n"))).toBe(false);
  });

  test("a named tool, or no parallel calls: exactly one", () => {
    const named = ask("Hi", { tools, toolChoice: { name: "get_time" } });
    expect(fits("qwen", named, call("get_time", '{"zone": [1]}'))).toBe(true);
    expect(fits("qwen", named, call("get_weather", '{"city": "x"}'))).toBe(false);
    for (const request of [named, { ...required, parallelToolCalls: false }]) {
      expect(fits("qwen", request, `${call("get_time", "{}")}\n${call("get_time", "{}")}`)).toBe(false);
    }
  });

  test("in each syntax", () => {
    expect(fits("llama3", required, '{"name": "get_weather", "parameters": {"city": "x"}}')).toBe(true);
    expect(
      fits(
        "mistral",
        required,
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "x"}}, {"name": "get_time", "arguments": {}}]',
      ),
    ).toBe(true);
  });

  test("thoughts may come first, unless they are not wanted", () => {
    const thoughts = "<think>\nhm </thin </think>\n\n";
    expect(fits("qwen", required, thoughts + call("get_time", "{}"))).toBe(true);
    expect(fits("qwen", required, call("get_time", "{}"))).toBe(true);
    expect(fits("deepseek-r1", required, `hm</think>\n${call("get_time", "{}")}`)).toBe(true);
    expect(fits("deepseek-r1", required, call("get_time", "{}"))).toBe(false);
    const none: BackendRequest = { ...required, reasoning: { effort: "none" } };
    expect(fits("deepseek-r1", none, call("get_time", "{}"))).toBe(true);
    expect(fits("deepseek-r1", none, `hm</think>\n${call("get_time", "{}")}`)).toBe(false);
  });

  test("a schema that can't be held is refused, naming the tool", () => {
    const bad: FunctionTool = { name: "bad", parameters: { type: "object", properties: { n: { multipleOf: 3 } } } };
    const render = (more: Partial<BackendRequest>): unknown =>
      formatOf("qwen").render(ask("Hi", { tools: [weather, bad], ...more }));
    expect(() => render({ toolChoice: "required" })).toThrow(
      expect.objectContaining({ code: "invalid-request", details: { param: "tools[1].parameters" } }),
    );
    expect(() => render({ toolChoice: { name: "get_weather" } })).not.toThrow();
    expect(() => render({})).not.toThrow();
    const list: FunctionTool = { name: "list", parameters: { type: "array" } };
    expect(() => render({ tools: [list], toolChoice: "required" })).toThrow(/have to be of type object/);
  });

  test("parameters with references", () => {
    const parameters = { properties: { a: { $ref: "#/$defs/n" } }, required: ["a"], $defs: { n: { type: "null" } } };
    const request = ask("Hi", { tools: [{ name: "t", parameters }], toolChoice: "required" });
    expect(fits("smollm2", request, call("t", '{"a": null}'))).toBe(true);
  });
});

describe("JSON", () => {
  const schema = { type: "array", items: { type: "integer" } };
  const bySchema = ask("Hi", { output: { format: { type: "json_schema", schema, strict: false } } });

  test("any object, or by schema", () => {
    const json = ask("Hi", { output: { format: { type: "json" } } });
    expect(fits("smollm2", json, '{"a": [1, null]}')).toBe(true);
    expect(fits("smollm2", json, "[1]")).toBe(false);
    expect(fits("smollm2", bySchema, "[1, 2]")).toBe(true);
    expect(fits("smollm2", bySchema, '["a"]')).toBe(false);
  });

  test("with tools left to the model: JSON or calls", () => {
    const request = { ...bySchema, tools };
    expect(fits("smollm2", request, "[1]")).toBe(true);
    expect(fits("smollm2", request, call("get_time", "{}"))).toBe(true);
    expect(fits("smollm2", request, `[1]${call("get_time", "{}")}`)).toBe(false);
  });

  test("a forced call outweighs it", () => {
    expect(fits("smollm2", { ...bySchema, tools, toolChoice: "required" }, "[1]")).toBe(false);
  });

  test("a schema that can't be held is refused", () => {
    const request = ask("Hi", { output: { format: { type: "json_schema", schema: { not: {} }, strict: false } } });
    expect(() => formatOf("smollm2").render(request)).toThrow(
      expect.objectContaining({ details: { param: "output.format.schema" } }),
    );
  });

  test("free text has no grammar", () => {
    expect(formatOf("smollm2").render(ask("Hi", { tools })).grammar).toBeUndefined();
  });
});
