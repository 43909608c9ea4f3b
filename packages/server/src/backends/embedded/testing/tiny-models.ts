/** Tiny models with a SentencePiece vocabulary and made-up weights: show how text and cache are handled, not what is said. */
import { type WrittenValue, writeGguf } from "./gguf-writer.ts";

/** `tokenizer.ggml.token_type` of llama.cpp. */
const tokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 } as const;

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
const words = "d r l o w e h \u2581 he ll or \u2581w \u2581wor hell ld hello \u2581world \u2581hello".split(" ");

/** Tokens of all tiny models, in the order of their numbers. */
export const tinyTokens: readonly string[] = [...special.map(([text]) => text), ...bytes, ...words];

const vocabulary: Readonly<Record<string, WrittenValue>> = {
  "tokenizer.ggml.model": "llama",
  "tokenizer.ggml.tokens": tinyTokens,
  "tokenizer.ggml.scores": Float32Array.from(tinyTokens, (_, index) => index - tinyTokens.length),
  "tokenizer.ggml.token_type": Int32Array.from([
    ...special.map(([, type]) => type),
    ...bytes.map(() => tokenType.byte),
    ...words.map(() => tokenType.normal),
  ]),
  "tokenizer.ggml.bos_token_id": 1,
  "tokenizer.ggml.eos_token_id": 2,
  "tokenizer.ggml.unknown_token_id": 0,
  "tokenizer.ggml.add_bos_token": true,
  "tokenizer.ggml.add_eos_token": false,
  "tokenizer.ggml.add_space_prefix": true,
};

const width = 32;
const heads = 2;
const feedForward = 64;
const contextTokens = 4_096;
const attention = {
  "attn_norm.weight": [width],
  "attn_q.weight": [width, width],
  "attn_k.weight": [width, width],
  "attn_v.weight": [width, width],
  "attn_output.weight": [width, width],
  "ffn_norm.weight": [width],
  "ffn_gate.weight": [width, feedForward],
  "ffn_up.weight": [width, feedForward],
  "ffn_down.weight": [feedForward, width],
};

/** Llama: every token sees all before it. @returns the file's bytes */
export function llamaModel(): Buffer {
  return write("llama", 1, attention, {
    "attention.head_count": heads,
    "attention.head_count_kv": heads,
    "rope.dimension_count": width / heads,
  });
}

/** Gemma 2: in every other layer a token sees only the 16 before it, and the cache forgets the rest. */
export function slidingWindowModel(): Buffer {
  const tensors = { ...attention, "post_attention_norm.weight": [width], "post_ffw_norm.weight": [width] };
  return write("gemma2", 2, tensors, {
    "attention.head_count": heads,
    "attention.head_count_kv": heads,
    "attention.key_length": width / heads,
    "attention.value_length": width / heads,
    "attention.sliding_window": 16,
  });
}

/** Mamba: one state for all that was read, of which no part can be taken back. */
export function recurrentModel(): Buffer {
  const [inner, state, rank, kernel] = [2 * width, 8, 8, 4];
  const tensors = {
    "attn_norm.weight": [width],
    "ssm_in.weight": [width, 2 * inner],
    "ssm_conv1d.weight": [kernel, inner],
    "ssm_conv1d.bias": [inner],
    "ssm_x.weight": [inner, rank + 2 * state],
    "ssm_dt.weight": [rank, inner],
    "ssm_dt.bias": [inner],
    ssm_a: [state, inner],
    ssm_d: [inner],
    "ssm_out.weight": [inner, width],
  };
  return write("mamba", 1, tensors, {
    "attention.head_count": 0,
    "ssm.conv_kernel": kernel,
    "ssm.inner_size": inner,
    "ssm.state_size": state,
    "ssm.time_step_rank": rank,
  });
}

function write(
  architecture: string,
  layers: number,
  layer: Readonly<Record<string, readonly number[]>>,
  settings: Readonly<Record<string, WrittenValue>>,
): Buffer {
  const tensors: Record<string, readonly number[]> = {
    "token_embd.weight": [width, tinyTokens.length],
    "output_norm.weight": [width],
    "output.weight": [width, tinyTokens.length],
  };
  for (let index = 0; index < layers; index++) {
    for (const [name, lengths] of Object.entries(layer)) tensors[`blk.${index}.${name}`] = lengths;
  }
  // Gemma writes with its embeddings.
  if (architecture === "gemma2") delete tensors["output.weight"];
  const all: Readonly<Record<string, WrittenValue>> = {
    context_length: contextTokens,
    embedding_length: width,
    block_count: layers,
    feed_forward_length: architecture === "mamba" ? 0 : feedForward,
    vocab_size: tinyTokens.length,
    "attention.layer_norm_rms_epsilon": Float32Array.of(1e-5),
    ...settings,
  };
  return writeGguf({
    metadata: {
      "general.architecture": architecture,
      "general.name": `tiny ${architecture}`,
      ...Object.fromEntries(Object.entries(all).map(([name, value]) => [`${architecture}.${name}`, value])),
      ...vocabulary,
    },
    tensors,
    weights: Float32Array.from(Object.entries(tensors).flatMap(([name, lengths]) => madeUp(name, lengths))),
  });
}

/** The same small numbers for the same tensor, every time. */
function madeUp(name: string, lengths: readonly number[]): number[] {
  const count = lengths.reduce((product, length) => product * length, 1);
  const start = [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 10_007;
  return Array.from({ length: count }, (_, place) => {
    // What is attended to has to matter.
    if (name.endsWith("post_attention_norm.weight")) return 6;
    if (name.endsWith("norm.weight")) return 1;
    const value = Math.sin((start + place) * 12.9898) * 43_758.5453;
    const fraction = value - Math.floor(value) - 0.5;
    // A state must fade.
    return name.endsWith("ssm_a") ? -Math.abs(fraction) - 0.1 : fraction;
  });
}
