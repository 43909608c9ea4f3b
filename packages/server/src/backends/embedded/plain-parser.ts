import type { OutputParser } from "./chat-format/index.ts";

/** Reads an answer that has no form: text between a prompt and its suffix. */
export function createPlainParser(candidate: number): OutputParser {
  return {
    push: (delta, logprobs) => {
      if (delta === "" && logprobs === undefined) return [];
      return [{ type: "text", candidate, delta, ...(logprobs === undefined ? {} : { logprobs }) }];
    },
    end: (finishReason, rawFinishReason) => [{ type: "finish", candidate, finishReason, rawFinishReason }],
  };
}
