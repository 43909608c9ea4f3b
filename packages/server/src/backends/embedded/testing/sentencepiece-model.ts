/** A tiny Llama model with a SentencePiece vocabulary and made-up weights: shows how text is handled, not what it says. */
import { writeGguf } from "./gguf-writer.ts";

/** `tokenizer.ggml.token_type` of llama.cpp. */
const tokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

const width = 32;
const heads = 2;
const feedForward = 64;
const contextTokens = 512;

const special = [
  ["<unk>", tokenType.unknown],
  ["<s>", tokenType.control],
  ["</s>", tokenType.control],
  ["[INST]", tokenType.control],
  ["[/INST]", tokenType.control],
  ["<tool>", tokenType.userDefined],
] as const;
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
/** From less to more likely, so that longer pieces win. */
const pieces = [
  "d",
  "r",
  "l",
  "o",
  "w",
  "e",
  "h",
  "\u2581",
  "he",
  "ll",
  "or",
  "\u2581w",
  "\u2581wor",
  "hell",
  "ld",
  "hello",
  "\u2581world",
  "\u2581hello",
];

/** Tokens in the order of their numbers. */
export const sentencePieceTokens: readonly string[] = [...special.map(([text]) => text), ...bytes, ...pieces];

/** @returns the file's bytes */
export function sentencePieceModel(): Buffer {
  const size = sentencePieceTokens.length;
  const tensors = {
    "token_embd.weight": [width, size],
    "output_norm.weight": [width],
    "output.weight": [width, size],
    "blk.0.attn_norm.weight": [width],
    "blk.0.attn_q.weight": [width, width],
    "blk.0.attn_k.weight": [width, width],
    "blk.0.attn_v.weight": [width, width],
    "blk.0.attn_output.weight": [width, width],
    "blk.0.ffn_norm.weight": [width],
    "blk.0.ffn_gate.weight": [width, feedForward],
    "blk.0.ffn_up.weight": [width, feedForward],
    "blk.0.ffn_down.weight": [feedForward, width],
  };
  const count = Object.values(tensors).reduce((sum, lengths) => sum + lengths.reduce((a, b) => a * b, 1), 0);
  const types = Int32Array.from([
    ...special.map(([, type]) => type),
    ...bytes.map(() => tokenType.byte),
    ...pieces.map(() => tokenType.normal),
  ]);
  return writeGguf({
    metadata: {
      "general.architecture": "llama",
      "general.name": "SentencePiece test",
      "llama.vocab_size": size,
      "llama.context_length": contextTokens,
      "llama.embedding_length": width,
      "llama.block_count": 1,
      "llama.feed_forward_length": feedForward,
      "llama.attention.head_count": heads,
      "llama.attention.head_count_kv": heads,
      "llama.attention.layer_norm_rms_epsilon": Float32Array.of(1e-5),
      "llama.rope.dimension_count": width / heads,
      "tokenizer.ggml.model": "llama",
      "tokenizer.ggml.tokens": sentencePieceTokens,
      "tokenizer.ggml.scores": Float32Array.from(sentencePieceTokens, (_, index) => index - size),
      "tokenizer.ggml.token_type": types,
      "tokenizer.ggml.bos_token_id": 1,
      "tokenizer.ggml.eos_token_id": 2,
      "tokenizer.ggml.unknown_token_id": 0,
      "tokenizer.ggml.add_bos_token": true,
      "tokenizer.ggml.add_eos_token": false,
      "tokenizer.ggml.add_space_prefix": true,
    },
    tensors,
    weights: Float32Array.from({ length: count }, madeUp),
  });
}

/** The same small number for the same place, every time. */
function madeUp(_: unknown, place: number): number {
  return Math.sin(place * 12.9898) * 0.2;
}
