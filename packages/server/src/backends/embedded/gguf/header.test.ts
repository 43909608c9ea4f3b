import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type WrittenFile, writeGguf } from "../testing/gguf-writer.ts";
import { chatModelFile, embeddingModelFile, missingModels } from "../testing/model-files.ts";
import { readGgufHeader } from "./header.ts";
import { GgufFormatError } from "./header-reader.ts";
import { modelFacts } from "./model-facts.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-gguf-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(bytes: Buffer) {
  const path = join(folder, "model.gguf");
  await writeFile(path, bytes);
  return await readGgufHeader(path);
}

const small: WrittenFile = {
  metadata: {
    "general.architecture": "llama",
    "general.file_type": 3,
    "llama.block_count": 2,
    "llama.context_length": 1024,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["a", "b", "<|fim_middle|>"],
    "tokenizer.ggml.add_bos_token": true,
    "tokenizer.chat_template": "{{ x }}",
  },
  tensors: { "a.weight": [8, 4], "b.weight": [3] },
};

describe("readGgufHeader", () => {
  test("reads values, counts arrays and weights", async () => {
    const header = await read(writeGguf(small));
    expect(header).toMatchObject({ parameters: 35, quantization: "Q4_1", hasInfillTokens: true });
    expect(header.metadata.get("tokenizer.ggml.add_bos_token")).toBe(true);
    expect(header.arrayLengths.get("tokenizer.ggml.tokens")).toBe(3);
    expect(header.neededBytes).toBe(header.sizeBytes);
  });

  test("a long vocabulary is skipped, over many chunks", async () => {
    const tokens = Array.from({ length: 100_000 }, (_, index) => `token ${index}`);
    const header = await read(writeGguf({ metadata: { "tokenizer.ggml.tokens": tokens, after: "here" } }));
    expect(header.metadata.get("after")).toBe("here");
    expect(header.arrayLengths.get("tokenizer.ggml.tokens")).toBe(100_000);
  });

  const whole = writeGguf(small);
  test.each([
    ["an empty file", Buffer.alloc(0), /is no GGUF file/],
    ["something else", Buffer.alloc(1_000, 65), /is no GGUF file/],
    ["an unknown version", writeGguf({ ...small, version: 9 }), /version 9/],
    ["missing weights", writeGguf({ ...small, dataBytes: 100 }), /is cut off: it has \d+ of \d+ bytes/],
    ["a count that makes no sense", damaged(whole, 8, 0xff), /counts make no sense/],
    ["a key that is too long", damaged(whole, 27, 0x7f), /too long, so it is damaged/],
  ])("%s is refused", async (_name, bytes, message) => {
    await expect(read(bytes)).rejects.toThrow(message);
  });

  test("cut off anywhere, it is refused, not misread", async () => {
    for (let length = 0; length < whole.length; length += 7) {
      await expect(read(whole.subarray(0, length))).rejects.toThrow(GgufFormatError);
    }
  });

  test("damaged anywhere, it never hangs nor fails in another way", async () => {
    for (let at = 4; at < 500; at += 3) {
      const result = await read(damaged(whole, at, 0xf3)).catch((error: unknown) => error);
      if (result instanceof Error) expect(result).toBeInstanceOf(GgufFormatError);
    }
  });
});

function damaged(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = value;
  copy[at + 3] = value;
  return copy;
}

describe("modelFacts", () => {
  test("cache bytes: layers × heads × both lengths × 2", async () => {
    const facts = modelFacts(await read(writeGguf(small)));
    expect(facts).toMatchObject({
      use: "text",
      trainedContextTokens: 1024,
      vocabularySize: 3,
      chatTemplate: "{{ x }}",
    });
    expect(facts.cacheBytesPerToken).toBe(2 * 2 * (16 + 16) * 2);
  });

  test.each([
    ["bert", { "bert.pooling_type": 1 }, "embedding"],
    ["nomic-bert", {}, "embedding"],
    ["qwen3", { "qwen3.pooling_type": 3 }, "embedding"],
    ["qwen3", { "qwen3.pooling_type": 4 }, "reranking"],
    ["qwen3", {}, "text"],
    ["clip", {}, "other"],
    ["llama", { "general.type": "adapter" }, "other"],
  ])("%s with %o is for %s", async (architecture, more, use) => {
    const header = await read(writeGguf({ metadata: { "general.architecture": architecture, ...more } }));
    expect(modelFacts(header).use).toBe(use);
  });

  test("heads that differ by layer are summed", async () => {
    const metadata = {
      "general.architecture": "x",
      "x.block_count": 3,
      "x.attention.head_count": 4,
      "x.attention.head_count_kv": [1, 0, 2],
      "x.attention.key_length": 8,
      "x.attention.value_length": 8,
    };
    expect(modelFacts(await read(writeGguf({ metadata }))).cacheBytesPerToken).toBe(3 * 16 * 2);
  });

  test.skipIf(missingModels !== undefined)("the real models", async () => {
    const chat = await readGgufHeader(chatModelFile());
    expect(chat).toMatchObject({ parameters: 134_515_008, quantization: "Q4_1" });
    const facts = modelFacts(chat);
    expect(facts).toMatchObject({
      architecture: "llama",
      use: "text",
      trainedContextTokens: 8_192,
      vocabularySize: 49_152,
    });
    expect(facts.cacheBytesPerToken).toBe(23_040);
    expect(modelFacts(await readGgufHeader(embeddingModelFile()))).toMatchObject({
      use: "embedding",
      embeddingDimensions: 384,
      trainedContextTokens: 512,
      cacheBytesPerToken: 0,
    });
  });
});
