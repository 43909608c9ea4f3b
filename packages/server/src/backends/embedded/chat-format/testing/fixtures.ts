/** For tests: the templates of the fixtures as formats, and short ways to write requests. */
import { readFileSync } from "node:fs";
import {
  type BackendRequest,
  type FunctionTool,
  type InputItem,
  type MessageItem,
  type Role,
  requestDefaults,
} from "@plenum/core";
import { type ChatFormat, createChatFormat, type RenderedPrompt } from "../index.ts";

const vocabularies = {
  smollm2: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  "tools-chatml": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  qwen: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  llama3: ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"],
  mistral: [
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
  ],
  gemma: ["<bos>", "<start_of_turn>", "<end_of_turn>"],
  "deepseek-r1": [
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
  ],
} as const;

export type FixtureName = keyof typeof vocabularies;

const formats = new Map<FixtureName, ChatFormat>();

export function formatOf(name: FixtureName): ChatFormat {
  const format = formats.get(name) ?? createFormat(name);
  formats.set(name, format);
  return format;
}

function createFormat(name: FixtureName): ChatFormat {
  const [bosToken, eosToken = bosToken] = vocabularies[name];
  const template = readFileSync(new URL(`../__fixtures__/${name}.jinja`, import.meta.url), "utf8");
  return createChatFormat({ template, bosToken, eosToken, specialTokens: vocabularies[name] });
}

export function message(role: Role, text: string): MessageItem {
  return { type: "message", role, content: [{ type: "text", text }] };
}

export function requestWith(items: readonly InputItem[], more: Partial<BackendRequest> = {}): BackendRequest {
  return { ...requestDefaults, model: "test", input: { kind: "items", items }, ...more };
}

export function ask(text: string, more: Partial<BackendRequest> = {}): BackendRequest {
  return requestWith([message("user", text)], more);
}

export function promptText(prompt: RenderedPrompt): string {
  return prompt.pieces.map((piece) => piece.text).join("");
}

export const weather: FunctionTool = {
  name: "get_weather",
  description: "Current weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

export const clock: FunctionTool = { name: "get_time" };
