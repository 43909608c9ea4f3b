import type { InputItem } from "@plenum/core";
import { describe, expect, test } from "vitest";
import { createChatFormat } from "./index.ts";
import { ask, formatOf, message, promptText, requestWith, weather } from "./testing/fixtures.ts";

const jsonSchema = { type: "json_schema", schema: { type: "null" }, strict: true } as const;

describe("the model's own template", () => {
  test("SmolLM2 keeps its default system message, as llama-server renders it", () => {
    expect(promptText(formatOf("smollm2").render(ask("Name three colours.")))).toBe(
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("a system text takes the default's place", () => {
    const prompt = promptText(formatOf("smollm2").render(ask("Hi", { instructions: "Be short." })));
    expect(prompt).toBe(
      "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("an empty system text takes the default's place, too; a template without the role shows none of it", () => {
    const prompt = promptText(formatOf("smollm2").render(ask("Hi", { instructions: "" })));
    expect(prompt).toBe("<|im_start|>system\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  });

  test("instructions, system and developer texts become one system message", () => {
    const items = [
      message("system", "one"),
      message("user", "Hi"),
      message("developer", "two"),
      message("assistant", "Yes"),
      message("user", "Go"),
    ];
    const prompt = promptText(formatOf("qwen").render(requestWith(items, { instructions: "zero" })));
    expect(prompt).toBe(
      "<|im_start|>system\nzero\n\none\n\ntwo<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("no template: ChatML, whose turn names end the answer", () => {
    const prompt = createChatFormat({ specialTokens: [] }).render(ask("Hi"));
    expect(promptText(prompt)).toBe("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    expect(prompt.stop).toEqual(["<|im_end|>", "<|im_start|>"]);
  });

  test("a completion through the template is one message of the user", () => {
    const prompt = formatOf("gemma").render({ ...ask(""), input: { kind: "completion", prompt: "Hi", raw: false } });
    expect(promptText(prompt)).toBe("<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  });

  test("no system role: its text goes into the first message of the user", () => {
    const format = formatOf("gemma");
    expect(format.capabilities.systemRole).toBe(false);
    expect(promptText(format.render(ask("Hi", { instructions: "Be short." })))).toBe(
      "<bos><start_of_turn>user\nBe short.\n\nHi<end_of_turn>\n<start_of_turn>model\n",
    );
  });

  test("strict alternation: neighbours are joined, and the user begins", () => {
    const items = [message("assistant", "Hello"), message("user", "a"), message("user", "b")];
    expect(promptText(formatOf("gemma").render(requestWith(items)))).toBe(
      "<bos><start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n<start_of_turn>user\na\n\nb<end_of_turn>\n<start_of_turn>model\n",
    );
  });

  test("a last assistant message is continued", () => {
    const prompt = promptText(
      formatOf("qwen").render(requestWith([message("user", "Hi"), message("assistant", "Well, ")])),
    );
    expect(prompt.endsWith("<|im_start|>assistant\nWell, ")).toBe(true);
  });

  test("content as parts, for templates that want lists", () => {
    const template =
      "{% for m in messages %}{% for part in m.content %}{{ m.role + ': ' + part.text }}{% endfor %}\n{% endfor %}";
    expect(promptText(createChatFormat({ template, specialTokens: [] }).render(ask("Hi")))).toBe("user: Hi");
  });

  test("a refusal of the template is told in a sentence", () => {
    const template =
      "{% for m in messages %}{{ m.content }}{% if m.content == 'no' %}{{ raise_exception('Not this.') }}{% endif %}{% endfor %}";
    const format = createChatFormat({ template, specialTokens: [] });
    expect(() => format.render(ask("no"))).toThrow(
      expect.objectContaining({
        code: "invalid-request",
        message:
          "The model's chat template refuses this conversation (Not this.); change the order or kind of its messages.",
        details: { param: "input" },
      }),
    );
  });

  test("a template that can't write any conversation is the runtime's fault", () => {
    const format = createChatFormat({ template: "{{ messages | unknown_filter }}", specialTokens: [] });
    expect(() => format.render(ask("Hi"))).toThrow(expect.objectContaining({ code: "backend-error" }));
  });

  test("a broken template is the runtime's fault", () => {
    expect(() => createChatFormat({ template: "{% if %}", specialTokens: [] })).toThrow(/chat template can't be read/);
  });

  test("images are refused", () => {
    const image: InputItem = { type: "message", role: "user", content: [{ type: "image", url: "data:," }] };
    expect(() => formatOf("smollm2").render(requestWith([image]))).toThrow(/reads text only/);
  });
});

describe("thoughts", () => {
  test("effort none is told to the template", () => {
    const format = formatOf("qwen");
    expect(format.capabilities.reasoning).toBe(true);
    expect(formatOf("smollm2").capabilities.reasoning).toBe(false);
    expect(promptText(format.render(ask("Hi", { reasoning: { effort: "none" } })))).toMatch(
      /assistant\n<think>\n\n<\/think>\n\n$/,
    );
    expect(promptText(format.render(ask("Hi")))).toMatch(/assistant\n$/);
  });

  test("effort none closes what a template opens nevertheless", () => {
    const format = formatOf("deepseek-r1");
    expect(promptText(format.render(ask("Hi")))).toMatch(/<｜Assistant｜><think>\n$/);
    expect(promptText(format.render(ask("Hi", { reasoning: { effort: "none" } })))).toMatch(
      /<think>\n\n<\/think>\n\n$/,
    );
  });

  test("thoughts of the past reach the template", () => {
    const items: InputItem[] = [
      message("user", "Hi"),
      { type: "reasoning", text: "hm" },
      message("assistant", "Yes"),
      message("user", "Go"),
    ];
    expect(promptText(formatOf("qwen").render(requestWith(items)))).toContain("<think>\nhm\n</think>\n\nYes<|im_end|>");
  });

  test("thoughts before a continued message", () => {
    const items: InputItem[] = [message("user", "Hi"), { type: "reasoning", text: "hm" }, message("assistant", "Ye")];
    expect(promptText(formatOf("qwen").render(requestWith(items)))).toMatch(/assistant\n<think>\nhm\n<\/think>\n\nYe$/);
    expect(promptText(formatOf("deepseek-r1").render(requestWith(items)))).toMatch(/<think>\nhm\n<\/think>\n\nYe$/);
  });
});

describe("tools", () => {
  const history: InputItem[] = [
    message("user", "Weather?"),
    {
      type: "function_call",
      callId: "call_1",
      name: "get_weather",
      arguments: '{"city":"Paris","id":9007199254740993123,"x":1.0,"y":"1.0"}',
    },
    { type: "function_call_output", callId: "call_1", output: "22" },
  ];

  test("what each template can do", () => {
    const found = (["smollm2", "tools-chatml", "qwen", "llama3", "mistral", "gemma", "deepseek-r1"] as const).map(
      (name) => {
        const { capabilities, visibleTokens } = formatOf(name);
        return [name, capabilities.toolsEmulated ? "emulated" : "native", visibleTokens.join(" ")];
      },
    );
    expect(found).toEqual([
      ["smollm2", "emulated", ""],
      ["tools-chatml", "native", ""],
      ["qwen", "native", ""],
      ["llama3", "native", "<|python_tag|>"],
      ["mistral", "native", "[TOOL_CALLS]"],
      ["gemma", "emulated", ""],
      ["deepseek-r1", "emulated", "<think> </think>"],
    ]);
  });

  test.each([
    [
      "tools-chatml",
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "id": 9007199254740993123, "x": 1.0, "y": "1.0"}}\n</tool_call><|im_end|>\n<|im_start|>tool\n22<|im_end|>',
    ],
    [
      "qwen",
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "id": 9007199254740993123, "x": 1.0, "y": "1.0"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n22\n</tool_response><|im_end|>',
    ],
    [
      "llama3",
      '{"name": "get_weather", "parameters": {"city": "Paris", "id": 9007199254740993123, "x": 1.0, "y": "1.0"}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"22"<|eot_id|>',
    ],
    [
      "mistral",
      '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "id": 9007199254740993123, "x": 1.0, "y": "1.0"}, "id": "call00000"}]</s>[TOOL_RESULTS] {"content": 22, "call_id": "call00000"}[/TOOL_RESULTS]',
    ],
    [
      "smollm2",
      '<|im_start|>assistant\n<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris","id":9007199254740993123,"x":1.0,"y":"1.0"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n22\n</tool_response><|im_end|>',
    ],
  ] as const)("%s: past calls and outputs, big integers exact", (name, expected) => {
    expect(promptText(formatOf(name).render(requestWith(history, { tools: [weather] })))).toContain(expected);
  });

  test("shown by the template, or in a system text", () => {
    expect(promptText(formatOf("qwen").render(ask("Hi", { tools: [weather] })))).toContain(
      '{"type": "function", "function": {"name": "get_weather"',
    );
    const emulated = promptText(formatOf("smollm2").render(ask("Hi", { tools: [weather], instructions: "Be short." })));
    expect(emulated).toMatch(/^<\|im_start\|>system\nBe short\.\n\nYou can call functions/);
    expect(emulated).toContain('{"name":"get_weather","description":"Current weather of a city","parameters":{');
  });

  test("not shown with choice none", () => {
    for (const name of ["qwen", "smollm2"] as const) {
      const prompt = formatOf(name).render(ask("Hi", { tools: [weather], toolChoice: "none" }));
      expect(promptText(prompt)).not.toContain("get_weather");
      expect(prompt.grammar).toBeUndefined();
    }
  });

  test("choices that can't be made", () => {
    const format = formatOf("qwen");
    expect(() => format.render(ask("Hi", { toolChoice: "required" }))).toThrow(/no tools/);
    expect(() => format.render(ask("Hi", { tools: [weather], toolChoice: { name: "x" } }))).toThrow(/names "x"/);
  });

  test("only one call: its end ends the answer", () => {
    const request = ask("Hi", { tools: [weather], parallelToolCalls: false });
    expect(formatOf("smollm2").render(request).stop).toEqual(["</tool_call>"]);
    expect(formatOf("smollm2").render({ ...request, output: { format: jsonSchema } }).stop).toEqual(["</tool_call>"]);
    expect(formatOf("llama3").render(request).stop).toEqual([]);
  });
});
