import { expect, test } from "vitest";
import { nameModel } from "./model-name.ts";

test.each([
  ["smollm2-135m-instruct-q4_1.gguf", "smollm2:135m", "smollm2"],
  ["all-minilm-l6-v2-f16.gguf", "all-minilm-l6-v2", "all-minilm"],
  ["Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf", "qwen2.5-coder:7b", "qwen2.5-coder"],
  ["llama-2-7b-chat.Q4_K_M.gguf", "llama-2:7b", "llama-2"],
  ["Llama-3.2-1B-Instruct-IQ4_XS.gguf", "llama-3.2:1b", "llama-3.2"],
  ["Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "qwen3:30b-a3b", "qwen3"],
  ["mixtral-8x7b-instruct-v0.1.Q8_0.gguf", "mixtral:8x7b-v0.1", "mixtral"],
  ["gemma-2-2b-it-bf16.gguf", "gemma-2:2b", "gemma-2"],
  ["nomic-embed-text-v1.5.f32.gguf", "nomic-embed-text-v1.5", "nomic-embed-text"],
  ["gpt-oss-20b-mxfp4.gguf", "gpt-oss:20b", "gpt-oss"],
  ["big-70b-q8_0-00001-of-00003.gguf", "big:70b", "big"],
  ["bge-m3.gguf", "bge-m3", undefined],
  ["7b.gguf", "7b", undefined],
  ["-.gguf", "model", undefined],
])("%s is %s", (file, name, alias) => {
  const made = nameModel(file);
  expect(made.name).toBe(name);
  expect(made.aliases).toEqual(alias === undefined ? [] : [alias, `${alias}:latest`]);
});

test("title and long name", () => {
  expect(nameModel("smollm2-135m-instruct-q4_1.gguf")).toMatchObject({
    title: "Smollm2 135M Instruct",
    longName: "smollm2:135m-instruct-q4_1",
  });
});
