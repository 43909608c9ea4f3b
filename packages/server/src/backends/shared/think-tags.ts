/** Texts around what a model thinks before it answers. */
export interface ThinkTags {
  readonly open: string;
  readonly close: string;
}

/** What an answer begins with: inside the thoughts, maybe with thoughts, or with its text. */
export type ThinkStart = "inside" | "maybe" | "none";

/** Tags that models are known to use. */
export const knownThinkTags: readonly ThinkTags[] = [
  { open: "<think>", close: "</think>" },
  { open: "<thinking>", close: "</thinking>" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "<seed:think>", close: "</seed:think>" },
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
  { open: "<reasoning>", close: "</reasoning>" },
];
