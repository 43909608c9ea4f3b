import type { BackendRequest } from "@plenum/core";
import type { ChatFormat, ChatFormatOptions } from "./chat-format.ts";

export type { ChatFormat, ChatFormatOptions, OutputParser, PromptPiece, RenderedPrompt } from "./chat-format.ts";

/**
 * Makes the format of one model from its chat template and special tokens.
 * @throws CoreError backend-error when the template can't be read
 */
export function createChatFormat(options: ChatFormatOptions): ChatFormat {
  throw new TypeError(`not built yet: ${options.specialTokens.length} special tokens`);
}

/**
 * For `truncation: "oldest"`: the request without its oldest turn that is not system text (a call leaves together with
 * its outputs). Undefined when nothing can go.
 */
export function dropOldestTurn(request: BackendRequest): BackendRequest | undefined {
  void request;
  return undefined;
}
