import { type FieldTable, honoured, withoutEffect } from "../fields.ts";

/** What becomes of each field of `POST /v1/embeddings`. */
export const embeddingFields = {
  input: { effect: "honoured", note: "a text, token ids, or a list of up to 2048 of one of them" },
  model: honoured,
  dimensions: honoured,
  encoding_format: { effect: "honoured", note: "`float` (default) or `base64`, 32-bit little-endian" },
  user: withoutEffect,
} as const satisfies FieldTable;

const embeddingExtraFields = { keep_alive: honoured } as const satisfies FieldTable;

export const embeddingTable: FieldTable = { ...embeddingFields, ...embeddingExtraFields };
