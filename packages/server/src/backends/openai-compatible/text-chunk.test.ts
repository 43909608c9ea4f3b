import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TextChunk } from "./text-chunk.ts";

const around = (content: string, more: object = {}, finish: string | null = null): string =>
  JSON.stringify({
    id: "chatcmpl-1",
    created: 1_700_000_000,
    choices: [{ index: 0, delta: { content, ...more }, logprobs: null, finish_reason: finish }],
  });

function learned(data: string): TextChunk {
  const chunk = new TextChunk();
  chunk.learn(data, JSON.parse(data));
  return chunk;
}

describe("usual chunk of a stream", () => {
  it("reads the text of a chunk that differs in nothing else", () => {
    const usual = learned(around(" token"));
    expect(usual.textOf(around(" other"))).toBe(" other");
    expect(usual.textOf(around(""))).toBe("");
  });

  it("gives what a parser gives, whatever the text, or leaves the chunk to it", () => {
    const usual = learned(around("first"));
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const given = usual.textOf(around(text));
        expect([undefined, JSON.parse(around(text)).choices[0].delta.content]).toContain(given);
        // Lone surrogates, too, come as JSON writes them.
        expect(given).toBeDefined();
      }),
    );
  });

  it.each([
    ["another field", around("a", { reasoning_content: "b" })],
    ["a call", around("a", { tool_calls: [{ index: 0, function: { name: "f" } }] })],
    ["an end", around("a", {}, "stop")],
    ["another moment", around("a").replace("1700000000", "1700000001")],
    ["usage", around("a").replace(/\}$/, ',"usage":{"prompt_tokens":1}}')],
    ["a text with a member behind it", around("a").replace('"a"', '"a","role":"assistant"')],
    ["what is no JSON", around("a").slice(0, -1)],
  ])("leaves a chunk with %s to the parser", (_name, data) => {
    expect(learned(around(" token")).textOf(data)).toBeUndefined();
  });

  it.each([
    ["nothing else than a role", around("a", { role: "assistant" }), true],
    ["escapes", around('a"b'), false],
    ["no text", around(""), false],
    ["log probabilities", around("a").replace('"logprobs":null', '"logprobs":{"content":[]}'), false],
    ["another candidate", around("a").replace('"index":0', '"index":1'), false],
    ["its name twice", around('a"content":b').replaceAll("\\", ""), false],
  ])("learns from a chunk with %s: %#", (_name, data, isLearned) => {
    const usual = new TextChunk();
    usual.learn(data, parsedOrEmpty(data));
    expect(usual.textOf(data) !== undefined).toBe(isLearned);
  });

  it("gives up where every chunk differs, and learns again while chunks do repeat", () => {
    const usual = new TextChunk();
    for (let made = 0; made < 20; made += 1) {
      const data = around("a").replace("1700000000", String(made));
      usual.learn(data, JSON.parse(data));
    }
    expect(usual.textOf(around("a").replace("1700000000", "19"))).toBeUndefined();
  });
});

function parsedOrEmpty(data: string): Record<string, unknown> {
  try {
    return JSON.parse(data);
  } catch {
    return {};
  }
}
