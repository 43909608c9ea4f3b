import type { ChatFormat, ChatFormatOptions } from "./chat-format.ts";
import { TemplateChatFormat } from "./template-chat-format.ts";

export type { ChatFormat, ChatFormatOptions, OutputParser, PromptPiece, RenderedPrompt } from "./chat-format.ts";

/**
 * Makes the format of one model from its chat template and special tokens.
 * @throws CoreError backend-error when the template can't be read
 */
export function createChatFormat(options: ChatFormatOptions): ChatFormat {
  return new TemplateChatFormat(options);
}
