import { type BackendEvent, type BackendRequest, CoreError, type TokenLogprob } from "@plenum/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ask, clock, type FixtureName, formatOf, message, requestWith, weather } from "./testing/fixtures.ts";

interface Read {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish: string;
}

/** Runs the parser over the chunks and folds what comes. */
function read(
  name: FixtureName,
  request: BackendRequest,
  chunks: readonly string[],
  reason: "stop" | "length" = "stop",
): Read {
  const parser = formatOf(name).createOutputParser(request, 0);
  return fold([...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end(reason, "raw")]);
}

function fold(events: readonly BackendEvent[]): Read {
  let text = "";
  let reasoning = "";
  let finish = "";
  const calls: { name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.type === "text") text += event.delta;
    if (event.type === "reasoning") reasoning += event.delta;
    if (event.type === "function_call") {
      expect(event.call).toBe(calls.length);
      calls.push({ name: event.name, arguments: "" });
    }
    if (event.type === "function_call_arguments") {
      const call = calls[event.call];
      if (call !== undefined) call.arguments += event.delta;
    }
    if (event.type === "finish") finish = event.finishReason;
  }
  return { text, reasoning, calls, finish };
}

const withTools: Partial<BackendRequest> = { tools: [weather, clock] };
const big = '{"city": "Pa\\"r\\u00eds}{", "id": 9007199254740993123, "x": 1.0}';
const nothing = { text: "", reasoning: "", calls: [] };

describe("calls in free text", () => {
  const cases: Record<
    string,
    [FixtureName, text: string, expected: Omit<Read, "finish" | "reasoning"> & { reasoning?: string }]
  > = {
    "a Hermes call": [
      "qwen",
      `<tool_call>\n{"name": "get_weather", "arguments": ${big}}\n</tool_call>`,
      { text: "", calls: [{ name: "get_weather", arguments: big }] },
    ],
    "an emulated call": [
      "smollm2",
      `<tool_call>{"arguments":${big},"name":"get_weather"}</tool_call>\n`,
      { text: "", calls: [{ name: "get_weather", arguments: big }] },
    ],
    "text before and after": [
      "qwen",
      `Let me see.\n<tool_call>\n{"name": "get_time"}\n</tool_call>\nDone.`,
      { text: "Let me see.\n\nDone.", calls: [{ name: "get_time", arguments: "{}" }] },
    ],
    "several calls": [
      "qwen",
      '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>',
      {
        text: "",
        calls: [
          { name: "get_time", arguments: "{}" },
          { name: "get_weather", arguments: '{"city": "x"}' },
        ],
      },
    ],
    "a call without its end": [
      "qwen",
      '<tool_call>\n{"name": "get_time", "arguments": {}}',
      { text: "", calls: [{ name: "get_time", arguments: "{}" }] },
    ],
    "arguments as a string": [
      "qwen",
      '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"x\\"}"}</tool_call>',
      { text: "", calls: [{ name: "get_weather", arguments: '{"city": "x"}' }] },
    ],
    "an unknown tool": [
      "qwen",
      'a <tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call> b',
      { text: 'a <tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call> b', calls: [] },
    ],
    "broken JSON": [
      "qwen",
      "<tool_call>\n{name: get_time}\n</tool_call>",
      { text: "<tool_call>\n{name: get_time}\n</tool_call>", calls: [] },
    ],
    "arguments that are no object": [
      "qwen",
      '<tool_call>{"name": "get_time", "arguments": [1]}</tool_call>',
      { text: '<tool_call>{"name": "get_time", "arguments": [1]}</tool_call>', calls: [] },
    ],
    "no call behind the marker": ["qwen", "use <tool_call> for that", { text: "use <tool_call> for that", calls: [] }],
    "a marker inside a marker": [
      "qwen",
      '<tool_call><tool_call>{"name": "get_time"}</tool_call>',
      { text: "<tool_call>", calls: [{ name: "get_time", arguments: "{}" }] },
    ],
    "nearly a marker": ["qwen", "a < b <tool> c <tool_cal", { text: "a < b <tool> c <tool_cal", calls: [] }],
    "only white space": ["qwen", " \n ", { text: " \n ", calls: [] }],
    "a Llama call": [
      "llama3",
      `{"name": "get_weather", "parameters": ${big}}`,
      { text: "", calls: [{ name: "get_weather", arguments: big }] },
    ],
    "a Llama call behind its tag": [
      "llama3",
      '\n<|python_tag|>{"type": "function", "name": "get_time", "parameters": {}}',
      { text: "", calls: [{ name: "get_time", arguments: "{}" }] },
    ],
    "two Llama calls": [
      "llama3",
      '{"name": "get_time", "parameters": {}}; {"name": "get_time", "parameters": {}}',
      {
        text: "",
        calls: [
          { name: "get_time", arguments: "{}" },
          { name: "get_time", arguments: "{}" },
        ],
      },
    ],
    "JSON that is no Llama call": [
      "llama3",
      '{"answer": 42, "name": "get_time"}',
      { text: '{"answer": 42, "name": "get_time"}', calls: [] },
    ],
    "a Llama call not at the beginning": [
      "llama3",
      'Like {"name": "get_time", "parameters": {}}',
      { text: 'Like {"name": "get_time", "parameters": {}}', calls: [] },
    ],
    "Llama's tag before code": ["llama3", "<|python_tag|>print(1)", { text: "<|python_tag|>print(1)", calls: [] }],
    "Mistral calls": [
      "mistral",
      '[TOOL_CALLS] [{"name": "get_time", "arguments": {}}, {"name": "get_weather", "arguments": {"city": "x"}, "id": "abcdefghi"}]',
      {
        text: "",
        calls: [
          { name: "get_time", arguments: "{}" },
          { name: "get_weather", arguments: '{"city": "x"}' },
        ],
      },
    ],
    "a Mistral list that breaks": [
      "mistral",
      '[TOOL_CALLS][{"name": "get_time", "arguments": {}}, {"x"',
      { text: ' {"x"', calls: [{ name: "get_time", arguments: "{}" }] },
    ],
  };
  const reason = (calls: readonly unknown[]): string => (calls.length > 0 ? "tool_calls" : "stop");

  test.each(Object.entries(cases))(
    "%s, whole, letter by letter and at every split",
    (_name, [name, text, expected]) => {
      const request = ask("Hi", withTools);
      const wanted: Read = { reasoning: "", ...expected, finish: reason(expected.calls) };
      expect(read(name, request, [text])).toEqual(wanted);
      expect(read(name, request, [...text])).toEqual(wanted);
      for (let at = 1; at < text.length; at += 1)
        expect(read(name, request, [text.slice(0, at), text.slice(at)])).toEqual(wanted);
    },
  );

  test("only what may be a marker is held back", () => {
    const parser = formatOf("qwen").createOutputParser(ask("Hi", withTools), 0);
    const deltas = ["Hello ", "<tool", "box> and <to"].map((chunk) => fold(parser.push(chunk)).text);
    expect(deltas).toEqual(["Hello ", "", "<toolbox> and "]);
  });

  test("an unknown name frees the text at once", () => {
    const parser = formatOf("qwen").createOutputParser(ask("Hi", withTools), 0);
    expect(fold(parser.push('<tool_call>{"name": "rm",')).text).toBe('<tool_call>{"name": "rm",');
  });

  test("one call where only one is allowed", () => {
    const request = ask("Hi", { ...withTools, parallelToolCalls: false });
    const text = '<tool_call>{"name": "get_time"}</tool_call><tool_call>{"name": "get_time"}</tool_call>';
    expect(read("qwen", request, [text]).calls).toHaveLength(1);
    expect(read("qwen", request, ['<tool_call>\n{"name": "get_time"}\n'])).toEqual({
      ...nothing,
      calls: [{ name: "get_time", arguments: "{}" }],
      finish: "tool_calls",
    });
  });

  test("cut by length: length stays, and what was held comes as text", () => {
    const cut = '<tool_call>\n{"name": "get_time", "argu';
    expect(read("qwen", ask("Hi", withTools), [cut], "length")).toEqual({ ...nothing, text: cut, finish: "length" });
  });

  test("without tools, markers are text", () => {
    const text = '<tool_call>{"name": "get_time"}</tool_call>';
    expect(read("qwen", ask("Hi"), [text]).text).toBe(text);
    expect(read("qwen", ask("Hi", { ...withTools, toolChoice: "none" }), [text]).text).toBe(text);
  });

  test("nothing is lost, whatever comes", () => {
    const part = fc.constantFrom(
      "<tool_call>",
      "</tool_call>",
      "{",
      "}",
      '"name"',
      ":",
      '"get_time"',
      ",",
      '"arguments"',
      "x",
      " ",
      "\n",
      "<",
      '\\"',
      "[TOOL_CALLS]",
      "[",
      "]",
      "1",
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 25 }),
        fc.constantFrom<FixtureName>("smollm2", "mistral", "llama3"),
        fc.array(fc.nat(4), { minLength: 1 }),
        (parts, name, sizes) => {
          const text = parts.join("");
          const chunks: string[] = [];
          for (let at = 0, index = 0; at < text.length; index += 1) {
            const size = (sizes[index % sizes.length] ?? 0) + 1;
            chunks.push(text.slice(at, at + size));
            at += size;
          }
          const result = read(name, ask("Hi", withTools), chunks);
          if (result.calls.length === 0) expect(result.text).toBe(text);
          expect(result).toEqual(read(name, ask("Hi", withTools), [text]));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("forced calls", () => {
  const required = ask("Hi", { ...withTools, toolChoice: "required" });

  test("the name comes at once, the arguments as they are written", () => {
    const parser = formatOf("qwen").createOutputParser(required, 1);
    expect(parser.push('<tool_call>\n{"name": "get_wea')).toEqual([]);
    expect(parser.push('ther"')).toEqual([{ type: "function_call", candidate: 1, call: 0, name: "get_weather" }]);
    expect(parser.push(', "arguments": {"ci')).toEqual([
      { type: "function_call_arguments", candidate: 1, call: 0, delta: '{"ci' },
    ]);
    expect(parser.push('ty": "x"}}\n</tool_call>')).toEqual([
      { type: "function_call_arguments", candidate: 1, call: 0, delta: 'ty": "x"}' },
    ]);
    expect(parser.end("stop", "eos")).toEqual([
      { type: "finish", candidate: 1, finishReason: "tool_calls", rawFinishReason: "eos" },
    ]);
  });

  test("letter by letter", () => {
    const text =
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>';
    const expected = {
      ...nothing,
      calls: [
        { name: "get_weather", arguments: '{"city": "x"}' },
        { name: "get_time", arguments: "{}" },
      ],
      finish: "tool_calls",
    };
    expect(read("qwen", required, [...text])).toEqual(expected);
    expect(read("qwen", required, [text])).toEqual(expected);
  });

  test("cut by length: the call is there as far as it came", () => {
    expect(read("qwen", required, ['<tool_call>\n{"name": "get_weather", "arguments": {"city": "P'], "length")).toEqual(
      {
        ...nothing,
        calls: [{ name: "get_weather", arguments: '{"city": "P' }],
        finish: "length",
      },
    );
  });

  test("an end without a call, or with arguments that don't fit, is invalid output", () => {
    expect(() => read("qwen", required, ["no"])).toThrow(/before its call was complete/);
    expect(() => read("qwen", required, ['<tool_call>\n{"name": "get_weather", "arguments": {"city": "P'])).toThrow(
      CoreError,
    );
    expect(() => read("qwen", required, ['<tool_call>\n{"name": "get_weather", "arguments": {"city": 1}}'])).toThrow(
      /do not fit its schema: \/city must be string/,
    );
  });
});

describe("thoughts", () => {
  const text = "<think>\nFirst < this.\n\nThen that.\n</think>\n\nThe answer.";
  const expected = { ...nothing, reasoning: "First < this.\n\nThen that.", text: "The answer.", finish: "stop" };

  test("at every split", () => {
    expect(read("qwen", ask("Hi"), [...text])).toEqual(expected);
    for (let at = 1; at < text.length; at += 1)
      expect(read("qwen", ask("Hi"), [text.slice(0, at), text.slice(at)])).toEqual(expected);
  });

  test("opened by the template", () => {
    const rest = text.slice("<think>".length);
    expect(read("deepseek-r1", ask("Hi"), [...rest])).toEqual(expected);
    expect(read("deepseek-r1", ask("Hi", { reasoning: { effort: "none" } }), ["Yes."])).toEqual({
      ...nothing,
      text: "Yes.",
      finish: "stop",
    });
    const continued = requestWith([message("user", "Hi"), message("assistant", "Well, ")]);
    expect(read("deepseek-r1", continued, ["yes."])).toEqual({ ...nothing, text: "yes.", finish: "stop" });
  });

  test("none, unfinished, or further on", () => {
    expect(read("qwen", ask("Hi"), ["Just <think>text</think>"])).toEqual({
      ...nothing,
      text: "Just <think>text</think>",
      finish: "stop",
    });
    expect(read("qwen", ask("Hi"), ["<think>on and on </th"], "length")).toEqual({
      ...nothing,
      reasoning: "on and on </th",
      finish: "length",
    });
    expect(read("qwen", ask("Hi"), ["<thi"])).toEqual({ ...nothing, text: "<thi", finish: "stop" });
    expect(read("smollm2", ask("Hi"), [text]).text).toBe(text);
  });

  test("before a call", () => {
    const result = read("qwen", ask("Hi", withTools), [
      "<think>\nhm\n</think>\n\n",
      '<tool_call>\n{"name": "get_time"}\n</tool_call>',
    ]);
    expect(result).toEqual({
      ...nothing,
      reasoning: "hm",
      calls: [{ name: "get_time", arguments: "{}" }],
      finish: "tool_calls",
    });
  });
});

describe("JSON", () => {
  const json = ask("Hi", { output: { format: { type: "json" } } });
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const bySchema = ask("Hi", { output: { format: { type: "json_schema", schema, strict: true } } });

  test("is validated when it is finished", () => {
    expect(read("smollm2", json, ['{"a"', ": 1}"])).toEqual({ ...nothing, text: '{"a": 1}', finish: "stop" });
    expect(read("smollm2", bySchema, ['{"n": 1}'])).toEqual({ ...nothing, text: '{"n": 1}', finish: "stop" });
    expect(() => read("smollm2", json, ["[1]"])).toThrow(/no JSON object/);
    expect(() => read("smollm2", json, ['{"a"'])).toThrow(CoreError);
    expect(() => read("smollm2", bySchema, ['{"n": 1.5}'])).toThrow(/does not fit the schema: \/n must be integer/);
    expect(() => read("smollm2", bySchema, ["{"])).toThrow(/no JSON/);
  });

  test("cut by length is not", () => {
    expect(read("smollm2", bySchema, ['{"n":'], "length")).toEqual({ ...nothing, text: '{"n":', finish: "length" });
  });

  test("with tools: either the one or the other", () => {
    const request = { ...bySchema, ...withTools };
    expect(read("qwen", request, ['<tool_call>\n{"name": "get_time"}\n</tool_call>']).calls).toHaveLength(1);
    expect(read("llama3", request, ['{"n": 3}'])).toEqual({ ...nothing, text: '{"n": 3}', finish: "stop" });
    expect(() => read("qwen", request, ["{}"])).toThrow(/required property 'n'/);
  });

  test("a schema with names of its own", () => {
    const named = { $schema: "http://json-schema.org/draft-07/schema#", $id: "https://example.org/x", ...schema };
    const request = ask("Hi", { output: { format: { type: "json_schema", schema: named, strict: true } } });
    expect(read("smollm2", request, ['{"n": 1}']).text).toBe('{"n": 1}');
  });
});

describe("log probabilities", () => {
  const token = (text: string): TokenLogprob => ({
    token: text,
    logprob: -1,
    bytes: [...new TextEncoder().encode(text)],
    top: [],
  });

  function textEvents(request: BackendRequest, pushes: readonly (readonly string[])[]): unknown[] {
    const parser = formatOf("qwen").createOutputParser(request, 0);
    const events = [
      ...pushes.flatMap((tokens) => parser.push(tokens.join(""), tokens.map(token))),
      ...parser.end("stop", "eos"),
    ];
    return events.flatMap((event) =>
      event.type === "text" ? [[event.delta, event.logprobs?.map((each) => each.token)]] : [],
    );
  }

  test("stay with their text while it is held back", () => {
    expect(textEvents(ask("Hi", withTools), [["Hi", " <"], ["tool"], ["box", ">"]])).toEqual([
      ["Hi ", ["Hi", " <"]],
      ["<toolbox>", ["tool", "box", ">"]],
    ]);
  });

  test("of thoughts and calls do not appear", () => {
    const pushes = [
      ["<think>", "\n", "x", "\n", "</think>", "\n\n"],
      ["Yes", "."],
      ["<tool_call>", '{"name": "get_time"}', "</tool_call>"],
    ];
    expect(textEvents(ask("Hi", withTools), pushes)).toEqual([["Yes.", ["Yes", "."]]]);
  });

  test("of tokens that are parts of a character go with it", () => {
    const parser = formatOf("smollm2").createOutputParser(ask("Hi"), 0);
    const [first, second] = [token("\ufffd"), token("\ufffd")];
    const events = [...parser.push("", [first]), ...parser.push("é", [second])];
    expect(events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []))).toEqual([first, second]);
  });
});
